// The program whose precompiled header all test programs take: they are compiled for executables, libraries are not.
int main() { return 0; }
