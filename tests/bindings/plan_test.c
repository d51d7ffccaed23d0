// Planning from C: texts both ways, verdicts, and errors.
#include "expect.h"

static void texts(void) {
    reshard_mesh* mesh = mesh_of("x=2,y=3[0,2,4,1,3,8]");
    EXPECT(strcmp(reshard_mesh_text(mesh), "x=2,y=3[0,2,4,1,3,8]") == 0);
    EXPECT(reshard_mesh_device_count(mesh) == 6 && reshard_mesh_world_size(mesh) == 9);
    reshard_release(mesh);

    reshard_layout* layout = layout_of("x=2,y=3", "bf16[7@x,5@y]");
    EXPECT(strcmp(reshard_layout_text(layout), "bf16[7@x,5@y]") == 0);
    EXPECT(strcmp(reshard_layout_dtype(layout), "bf16") == 0 && reshard_layout_element_bytes(layout) == 2);
    int64_t shape[2], tile[2], first[2];
    EXPECT(reshard_layout_dims(layout) == 2);
    SUCCEEDS(reshard_layout_shape(layout, shape, 2, &error));
    EXPECT(shape[0] == 7 && shape[1] == 5);
    SUCCEEDS(reshard_layout_tile(layout, 5, tile, first, 2, &error));
    EXPECT(tile[0] == 3 && tile[1] == 1 && first[0] == 4 && first[1] == 4);
    SUCCEEDS(reshard_layout_tile(layout, 6, tile, NULL, 2, &error));
    EXPECT(tile[0] == 0 && reshard_layout_tile_count(layout, 6) == 0);
    EXPECT(reshard_layout_tile_count(layout, 0) == 8 && reshard_layout_tile_bytes(layout, 0) == 16);
    FAILS(RESHARD_MISMATCH, "has 2 dimensions", reshard_layout_tile(layout, 0, tile, first, 3, &error));
    FAILS(RESHARD_USAGE, "`device` is -1", reshard_layout_tile(layout, -1, tile, first, 2, &error));

    reshard_text* text = NULL;
    SUCCEEDS(reshard_layout_write(layout, "spec", &text, &error));
    EXPECT(strcmp(reshard_text_chars(text), "P('x', 'y')") == 0 && reshard_text_bytes(text) == 11);
    reshard_release(text);
    reshard_layout* same = NULL;
    SUCCEEDS(reshard_layout_read("dtensor", "x=2,y=3", "bf16[7,5]", "(Shard(0), Shard(1))", &same, &error));
    EXPECT(strcmp(reshard_layout_text(same), reshard_layout_text(layout)) == 0);
    reshard_release(same);
    SUCCEEDS(reshard_layout_read("hlo", NULL, "f32[8,4]", "{devices=[2,1]<=[2]}", &same, &error));
    EXPECT(same != NULL);
    reshard_release(same);
    FAILS(RESHARD_USAGE, "`mesh` is needed", reshard_layout_read("spec", NULL, "f32[8]", "P('x')", &same, &error));
    EXPECT(same == NULL);
    FAILS(RESHARD_SYNTAX, "", reshard_layout_read("latin", NULL, NULL, "", &same, &error));

    reshard_mesh* again = NULL;
    SUCCEEDS(reshard_layout_mesh(layout, &again, &error));
    reshard_release(layout);
    EXPECT(strcmp(reshard_mesh_text(again), "x=2,y=3") == 0);
    reshard_release(again);

    reshard_layout* scalar = layout_of("x=2", "f32[]");
    SUCCEEDS(reshard_layout_tile(scalar, 7, NULL, NULL, 0, &error));
    EXPECT(reshard_layout_tile_count(scalar, 1) == 1 && reshard_layout_tile_count(scalar, 7) == 0);
    reshard_release(scalar);
}

static void plans(void) {
    reshard_layout* source = layout_of("x=2,y=3", "f32[12288@x,4096]");
    reshard_layout* target = layout_of("x=2,y=3", "f32[12288@y,4096]");
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.vocabulary = RESHARD_COLLECTIVES;
    reshard_plan *plan = NULL, *same = NULL;
    SUCCEEDS(reshard_plan_make(source, target, &options, &plan, &error));
    reshard_verdict verdict = RESHARD_VERDICT_INITIALIZER;
    SUCCEEDS(reshard_plan_verdict(plan, &verdict, &error));
    EXPECT(verdict.steps == 3 && verdict.peak_bytes == 96 << 20 && verdict.floor_bytes == 96 << 20);
    EXPECT(verdict.received_bytes_max_device == 64 << 20 && verdict.lower_bound_bytes == 64 << 20);
    EXPECT(verdict.optimal == 1 && verdict.execution == RESHARD_AS_STEPS && verdict.pieces == 1);
    EXPECT(verdict.picoseconds > 0 && verdict.size == sizeof verdict);
    reshard_text *table = NULL, *why = NULL;
    SUCCEEDS(reshard_plan_table(plan, &table, &error));
    EXPECT(strstr(reshard_text_chars(table), "all_gather  dim 0 -x") != NULL);
    SUCCEEDS(reshard_plan_explain(plan, &why, &error));
    EXPECT(strstr(reshard_text_chars(why), "gather_then_slice") != NULL);
    EXPECT(strstr(reshard_text_chars(why), "\x1b[") == NULL);

    SUCCEEDS(reshard_plan_parse(reshard_plan_text(plan), &options, &same, &error));
    EXPECT(strcmp(reshard_plan_text(plan), reshard_plan_text(same)) == 0);
    EXPECT(reshard_plan_fingerprint(plan) == reshard_plan_fingerprint(same) && reshard_plan_fingerprint(plan) != 0);
    reshard_verdict judged = RESHARD_VERDICT_INITIALIZER;
    SUCCEEDS(reshard_plan_verdict(same, &judged, &error));
    EXPECT(judged.picoseconds == verdict.picoseconds && judged.peak_bytes == verdict.peak_bytes);
    reshard_text* none = NULL;
    FAILS(RESHARD_USAGE, "by hand", reshard_plan_explain(same, &none, &error));
    EXPECT(none == NULL);
    reshard_layout *from = NULL, *to = NULL;
    SUCCEEDS(reshard_plan_ends(plan, &from, &to, &error));
    reshard_release(plan);  // objects made from it stay valid
    EXPECT(strcmp(reshard_layout_text(to), "f32[12288@y,4096]") == 0);
    EXPECT(strcmp(reshard_layout_text(from), reshard_layout_text(source)) == 0);

    options.peak_bytes_max = 1000;
    FAILS(RESHARD_INFEASIBLE, "", reshard_plan_make(source, target, &options, &plan, &error));
    EXPECT(plan == NULL);
    const void* all[] = {from, to, table, why, same, source, target};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
}

static void machines_and_caches(void) {
    reshard_machine *built_in = NULL, *machine = NULL;
    SUCCEEDS(reshard_machine_make("dgx-h100:nodes=4", &built_in, &error));
    SUCCEEDS(reshard_machine_parse(reshard_machine_text(built_in), &machine, &error));
    EXPECT(strcmp(reshard_machine_text(built_in), reshard_machine_text(machine)) == 0);
    reshard_plan_cache* cache = NULL;
    SUCCEEDS(reshard_plan_cache_make(8, &cache, &error));
    reshard_plan_cache* none = NULL;
    FAILS(RESHARD_USAGE, "`plans_max` is 0", reshard_plan_cache_make(0, &none, &error));
    reshard_layout *source = layout_of("x=32", "f32[4096@x,32]"), *target = layout_of("x=32", "f32[4096,32@x]");
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.machine = machine;
    options.cache = cache;
    options.disabled_rules = "search,three_stage";
    uint64_t fingerprints[2];
    for (int i = 0; i < 2; ++i) {
        reshard_plan* plan = NULL;
        SUCCEEDS(reshard_plan_make(source, target, &options, &plan, &error));
        fingerprints[i] = reshard_plan_fingerprint(plan);
        reshard_release(plan);
    }
    EXPECT(fingerprints[0] == fingerprints[1]);
    options.disabled_rules = "search,nothing_of_that_name";
    reshard_plan* plan = NULL;
    FAILS(RESHARD_SYNTAX, "nothing_of_that_name", reshard_plan_make(source, target, &options, &plan, &error));
    const void* all[] = {built_in, machine, cache, source, target};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
}

static void lists(void) {
    const reshard_layout* sources[] = {layout_of("x=4", "f32[4096@x,64]"), layout_of("x=4", "f32[512@x,64]")};
    const reshard_layout* targets[] = {layout_of("x=4", "f32[4096,64@x]"), layout_of("x=4", "f32[512]{U:x}")};
    reshard_list* list = NULL;
    FAILS(RESHARD_MISMATCH, "", reshard_list_make(sources, targets, 2, NULL, &list, &error));
    reshard_release(targets[1]);
    targets[1] = layout_of("x=4", "f32[512,64@x]");
    SUCCEEDS(reshard_list_make(sources, targets, 2, NULL, &list, &error));
    reshard_list_verdict verdict = RESHARD_LIST_VERDICT_INITIALIZER;
    SUCCEEDS(reshard_list_judge(list, &verdict, &error));
    EXPECT(verdict.arrays == 2 && verdict.buckets == 1 && verdict.footprint_bytes >= verdict.ends_bytes);
    EXPECT(verdict.ends_bytes == 2 * (4096 + 512) * 64);
    EXPECT(verdict.received_exact == 1 && verdict.lower_bound_bytes <= verdict.received_bytes);
    EXPECT(verdict.received_bytes == 3 * (4096 + 512) * 4 * 4 && verdict.sent_bytes == verdict.received_bytes);
    reshard_list_verdict older = RESHARD_LIST_VERDICT_INITIALIZER;  // as in an older program, without later fields
    older.size = offsetof(reshard_list_verdict, sent_bytes);
    older.sent_bytes = -1;
    SUCCEEDS(reshard_list_judge(list, &older, &error));
    EXPECT(older.received_bytes == verdict.received_bytes && older.sent_bytes == -1);
    reshard_plan* plan = NULL;
    SUCCEEDS(reshard_list_plan(list, 1, &plan, &error));
    reshard_release(plan);
    FAILS(RESHARD_USAGE, "no array 2 in a list of 2", reshard_list_plan(list, 2, &plan, &error));
    reshard_release(list);
    SUCCEEDS(reshard_list_make(NULL, NULL, 0, NULL, &list, &error));
    reshard_release(list);
    for (int i = 0; i < 2; ++i) {
        reshard_release(sources[i]);
        reshard_release(targets[i]);
    }
}

static void errors(void) {
    reshard_mesh* mesh = mesh_of("x=2");
    reshard_layout* layout = NULL;
    reshard_error* why = NULL;
    EXPECT(reshard_layout_parse(mesh, "f32[8@z]", &layout, &why) == RESHARD_LAYOUT);
    EXPECT(layout == NULL && reshard_error_code(why) == RESHARD_LAYOUT && reshard_error_offset(why) == 6);
    EXPECT(strcmp(reshard_error_text(why), "f32[8@z]") == 0);
    EXPECT(strstr(reshard_error_describe(why), "\n  f32[8@z]\n        ^") != NULL);
    reshard_release(why);
    EXPECT(reshard_layout_parse(mesh, "f32[8@z]", &layout, NULL) == RESHARD_LAYOUT);  // no error wanted

    FAILS(RESHARD_USAGE, "a mesh is needed, NULL", reshard_layout_parse(NULL, "f32[8]", &layout, &error));
    FAILS(RESHARD_USAGE, "NULL was given", reshard_layout_parse(mesh, NULL, &layout, &error));
    FAILS(RESHARD_USAGE, "no place for a layout", reshard_layout_parse(mesh, "f32[8]", NULL, &error));
    void* other = mesh;
    reshard_plan* plan = NULL;
    FAILS(RESHARD_USAGE, "a layout is needed, a mesh was given", reshard_plan_make(other, other, NULL, &plan, &error));
    layout = layout_of("x=2", "f32[8@x]");
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.size = 8;
    FAILS(RESHARD_USAGE, "struct reshard_options of 8 bytes",
          reshard_plan_make(layout, layout, &options, &plan, &error));
    options = (reshard_options)RESHARD_OPTIONS_INITIALIZER;
    options.objective = 3;
    FAILS(RESHARD_USAGE, "`objective` is 3", reshard_plan_make(layout, layout, &options, &plan, &error));
    options = (reshard_options)RESHARD_OPTIONS_INITIALIZER;
    options.machine = other;
    FAILS(RESHARD_USAGE, "a machine is needed, a mesh", reshard_plan_make(layout, layout, &options, &plan, &error));
    SUCCEEDS(reshard_plan_make(layout, layout, NULL, &plan, &error));
    reshard_verdict verdict = RESHARD_VERDICT_INITIALIZER;
    verdict.size = 0;
    FAILS(RESHARD_USAGE, "struct reshard_verdict of 0 bytes", reshard_plan_verdict(plan, &verdict, &error));
    FAILS(RESHARD_USAGE, "NULL was given", reshard_plan_verdict(plan, NULL, &error));
    reshard_release(plan);
    FAILS(RESHARD_SYNTAX, "", reshard_plan_parse("mesh x=2\nsource f32[8@x]\n", NULL, &plan, &error));
    FAILS(RESHARD_OVERFLOW, "", reshard_mesh_parse("x=4294967296,y=4294967296", &mesh, &error));
    EXPECT(mesh == NULL && plan == NULL);

    EXPECT(strcmp(reshard_code_name(RESHARD_LAYOUT), "layout") == 0 && strcmp(reshard_code_name(99), "unknown") == 0);
    EXPECT(strcmp(reshard_code_name(0), "ok") == 0 && strcmp(reshard_code_name(RESHARD_INTERNAL), "internal") == 0);
    EXPECT(reshard_mesh_text(NULL) == NULL && reshard_layout_text(NULL) == NULL && reshard_plan_text(NULL) == NULL);
    EXPECT(reshard_mesh_device_count(NULL) == -1 && reshard_layout_tile_bytes(NULL, 0) == -1);
    EXPECT(reshard_error_code(NULL) == RESHARD_OK && *reshard_error_describe(NULL) == 0);
    EXPECT(*reshard_text_chars(NULL) == 0 && reshard_retain(NULL) == NULL);
    reshard_release(NULL);
    reshard_release(layout);
    reshard_release(other);
}

int main(void) {
    EXPECT(reshard_abi() == RESHARD_ABI && strncmp(reshard_version(), "0.", 2) == 0);
    texts();
    plans();
    machines_and_caches();
    lists();
    errors();
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
