/* The input as a line from the keeper: what is taken is in range and can be told on. */
#include "engine/local/answer.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_machine(const struct engine_event *ev)
{
    const struct event_node *n = ev->machine.node;
    must(n->gpus <= GPUS_PER_NODE_MAX && n->name.n <= NAME_MAX_BYTES);
    for (uint32_t i = 0; i < n->gpus; i++)
        must(ev->machine.gpu_uuid[i] && n->link[i] < GPUS_PER_NODE_MAX);
}

FUZZ_TARGET(data, size)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct answer an;
    struct err e;
    if (answer_read((struct str){ (const char *)data, size }, &a, &an, &e) < 0) {
        must(e.msg[0] != '\0');
        return 0;
    }
    must(an.kind < KEEPER_EVENT_COUNT && an.event.kind < ENGINE_EVENT_COUNT);
    must(an.event.t_ms >= 0 && an.event.task.replica <= REPLICAS_MAX);
    if (an.kind == KEEPER_EV_NODE)
        check_machine(&an.event);
    if (an.kind == KEEPER_EV_ENDED)
        must(an.event.ended.why < TASK_END_COUNT && an.event.ended.code < 256);
    if (an.kind == KEEPER_EV_PROGRESS)
        must(an.event.progress.done <= UINT64_MAX / 100);
    return 0;
}
