#include "app/app.h"

int main(int argc, char** argv) {
  return anvil::app::run(argc, argv);
}
