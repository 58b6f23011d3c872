/* nvml_abi - the part of NVIDIA's NVML binary interface that we call, in our own words.
 *
 * NVML keeps old entry points when it adds new ones (_v2, _v3), so what is written here stays true
 * for later drivers.  Only nvml.c and the fake library of the tests include it.
 */
#ifndef NS_NODE_NVML_ABI_H
#define NS_NODE_NVML_ABI_H

/* What every call returns. */
enum nvml_rc {
    NVML_RC_SUCCESS = 0,
    NVML_RC_UNINITIALIZED = 1,
    NVML_RC_INVALID_ARGUMENT = 2,
    NVML_RC_NOT_SUPPORTED = 3,
    NVML_RC_NO_PERMISSION = 4,
    NVML_RC_NOT_FOUND = 6,
    NVML_RC_INSUFFICIENT_SIZE = 7,
    NVML_RC_DRIVER_NOT_LOADED = 9,
    NVML_RC_TIMEOUT = 10,
    NVML_RC_FUNCTION_NOT_FOUND = 13,
    NVML_RC_GPU_IS_LOST = 15,
    NVML_RC_RESET_REQUIRED = 16,
    NVML_RC_LIB_RM_VERSION_MISMATCH = 18,
    NVML_RC_GPU_NOT_FOUND = 28,
    NVML_RC_UNKNOWN = 999,
};

#define NVML_ABI_TEXT 96 /* bytes that hold any name, UUID or version */
#define NVML_ABI_NOT_AVAILABLE (~0ull)
#define NVML_ABI_CLOCK_SM 1u
#define NVML_ABI_CLOCK_MEMORY 2u
#define NVML_ABI_ECC_CORRECTED 0u
#define NVML_ABI_ECC_UNCORRECTED 1u
#define NVML_ABI_ECC_SINCE_BOOT 0u
#define NVML_ABI_P2P_NVLINK 2u

struct nvml_abi_pci {
    char bus_id_short[16];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_abi_memory {
    unsigned long long total, free, used;
};

struct nvml_abi_memory2 { /* used goes without what the driver keeps for itself */
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_ABI_MEMORY2_VERSION ((unsigned)sizeof(struct nvml_abi_memory2) | (2u << 24))

struct nvml_abi_utilisation {
    unsigned gpu, memory; /* percent */
};

struct nvml_abi_process { /* _v2 and _v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

struct nvml_abi_process1 {
    unsigned pid;
    unsigned long long used;
};

struct nvml_abi_process_load { /* percent of a stretch of time that ended then (us since 1970) */
    unsigned pid;
    unsigned long long t_us;
    unsigned sm, memory, encoder, decoder;
};

struct nvml_abi_event {
    void *device;
    unsigned long long type, data; /* of an XID error: its number */
    unsigned gpu_instance, compute_instance;
};
#define NVML_ABI_EVENT_XID 8ull

_Static_assert(sizeof(struct nvml_abi_process_load) == 32, "layout");
_Static_assert(sizeof(struct nvml_abi_event) == 32, "layout");
_Static_assert(sizeof(struct nvml_abi_pci) == 68, "layout");
_Static_assert(sizeof(struct nvml_abi_memory2) == 40, "layout");
_Static_assert(sizeof(struct nvml_abi_process) == 24, "layout");

#endif
