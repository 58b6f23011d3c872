/* checks - the functions of the table in doctor.c; nobody outside this folder includes it. */
#ifndef NS_DOCTOR_CHECKS_H
#define NS_DOCTOR_CHECKS_H

#include "doctor/doctor.h"

doctor_fn check_nvidia_driver, check_nvidia_versions, check_gpus_answer, check_gpu_devices;
doctor_fn check_kernel, check_clock, check_overlayfs, check_inotify, check_user_namespaces;
doctor_fn check_processes;
doctor_fn check_cgroups, check_cgroup_controllers, check_cgroup_delegation, check_swap_limits;
doctor_fn check_crun, check_criu, check_images, check_network, check_cni_plugins, check_scratch,
    check_own_programs;
doctor_fn check_state_folder, check_run_folder, check_disk, check_store, check_kept, check_jump,
    check_audit, check_tls;
doctor_fn check_port, check_keeper, check_mail;
doctor_fn check_kube_config, check_kube_server;

#endif
