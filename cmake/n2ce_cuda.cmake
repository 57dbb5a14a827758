# The CUDA backend: N2CE_CUDA = auto (if nvcc is found), on, off. Sets cuda_objects, the objects of
# src/cuda, empty in a build without, cuda_libraries, what they need, and cuda_pc, the same for pkg-config.
#
# nvcc is called directly: making CUDA a language of the project would let its linker and flags into
# builds that have nothing to do with it.
set(N2CE_CUDA auto CACHE STRING "GPU kernels: auto, on or off")
set_property(CACHE N2CE_CUDA PROPERTY STRINGS auto on off)
set(cuda_objects "")
set(cuda_libraries "")
set(cuda_pc "")
if(NOT N2CE_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "N2CE_CUDA is '${N2CE_CUDA}'; it must be auto, on or off.")
endif()
if(NOT N2CE_CUDA STREQUAL "off")
  find_program(N2CE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin /opt/cuda/bin)
  if(N2CE_NVCC)
    get_filename_component(nvcc_real ${N2CE_NVCC} REALPATH)
    get_filename_component(cuda_home ${nvcc_real}/../.. ABSOLUTE)
    find_library(N2CE_CUDART cudart_static HINTS ${cuda_home}/lib64 /usr/local/cuda/lib64
                 ${cuda_home}/targets/x86_64-linux/lib)
  endif()
  if(N2CE_CUDA STREQUAL "on" AND NOT (N2CE_NVCC AND N2CE_CUDART))
    message(FATAL_ERROR "N2CE_CUDA=on: nvcc or libcudart_static.a is not found. Set CUDA_HOME.")
  endif()
endif()

if(N2CE_NVCC AND N2CE_CUDART AND NOT N2CE_CUDA STREQUAL "off")
  message(STATUS "CUDA backend: ${N2CE_NVCC}")
  set(N2CE_CUDA_ARCHS "80;90a" CACHE STRING "Compute capabilities to compile for; the first as PTX too")
  list(GET N2CE_CUDA_ARCHS 0 least)
  set(archs -gencode arch=compute_${least},code=compute_${least})
  foreach(arch IN LISTS N2CE_CUDA_ARCHS)
    list(APPEND archs -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  set(cuda_flags -std=c++17 -O3 --threads 0 ${archs} -Werror all-warnings
      -Xcompiler -fPIC,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-fvisibility=hidden,-Wall,-Wextra,-ffp-contract=off
      -I${CMAKE_CURRENT_SOURCE_DIR}/src -I${CMAKE_CURRENT_SOURCE_DIR}/include)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} src/cuda/*.cu)
  file(GLOB_RECURSE cuda_headers CONFIGURE_DEPENDS src/cuda/*.h src/engine/*.h src/base/*.h include/*.h)
  foreach(source IN LISTS cuda_sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda
      COMMAND ${N2CE_NVCC} ${cuda_flags} -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${source} ${cuda_headers} COMMENT "nvcc ${name}.cu" VERBATIM)
    list(APPEND cuda_objects ${object})
  endforeach()
  set_source_files_properties(${cuda_objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(n2ce_cuda DEPENDS ${cuda_objects})
  set(cuda_libraries ${N2CE_CUDART} dl rt)
  set(cuda_pc " ${N2CE_CUDART} -ldl -lrt")
else()
  message(STATUS "CUDA backend: none")
endif()
