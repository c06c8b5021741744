// The program that dpwa_layer() links with the whole archive of a layer: that it links is the test.
int main() {}
