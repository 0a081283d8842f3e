#include "tenon/model/config_storage.inl"
#include "tenon/model/packed_file.inl"
