#include "tenon/cost/measured_host.inl"
#include "tenon/cost/peak_loops.inl"
#include "tenon/cost/read_bandwidth.inl"
#include "tenon/cost/stored.inl"
