#pragma once

__attribute__((visibility("default"))) int plugin_answer();
