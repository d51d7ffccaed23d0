// All test programs use the precompiled header of this program. It is compiled for executables, unlike a library's.
int main() { return 0; }
