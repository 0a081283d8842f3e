#include "tenon/model/config_storage.inl"
