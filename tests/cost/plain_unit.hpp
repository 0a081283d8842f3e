#pragma once

// x [n] = its RMS norm, by a unit that does not count.
void plain_norm(float* x, const float* gain, int n);
