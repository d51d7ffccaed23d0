// A user's ten lines in C: plan a move, and move an array between ranks of this process.
#include <reshard/c.h>
#include <stdio.h>

int main(void) {
    reshard_error* error = NULL;
    reshard_mesh* mesh = NULL;
    reshard_layout *source = NULL, *target = NULL;
    reshard_local* world = NULL;
    const int in[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}};
    int out[2][4] = {{0}, {0}};
    const void* from[] = {in[0], in[1]};
    void* to[] = {out[0], out[1]};
    const int64_t bytes[] = {sizeof in[0], sizeof in[1]};
    const int failed = reshard_mesh_parse("x=2", &mesh, &error) ||
                       reshard_layout_parse(mesh, "i32[2@x,4]", &source, &error) ||
                       reshard_layout_parse(mesh, "i32[2,4@x]", &target, &error) ||
                       reshard_local_make(2, NULL, &world, &error) ||
                       reshard_local_redistribute(world, source, target, from, bytes, to, bytes, &error);
    printf("%s: %s\n", reshard_version(), failed ? reshard_error_describe(error) : "moved");
    reshard_release(mesh), reshard_release(source), reshard_release(target), reshard_release(world);
    return failed || out[1][0] != 2 || out[1][3] != 7;
}
