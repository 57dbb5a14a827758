# n2ce_add_kernels(LIKE OUT FILE...): compiles kernel files once per instruction set
# (src/base/isa.h) with the flags of the target LIKE; OUT becomes the list of their objects.
include(CheckCSourceCompiles)
check_c_source_compiles("
  #ifndef __x86_64__
  #error not x86-64
  #endif
  int main(void) { return 0; }" N2CE_X86)

function(n2ce_add_kernels like out)
  set(portable_flags "")
  set(avx2_flags -mavx2)
  set(avx512_flags -mavx2 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  set(variants portable)
  if(N2CE_X86)
    list(APPEND variants avx2 avx512)
    target_compile_definitions(${like} PRIVATE N2CE_X86)
  endif()
  set(objects "")
  foreach(variant IN LISTS variants)
    add_library(n2ce_kernels_${variant} OBJECT ${ARGN})
    target_link_libraries(n2ce_kernels_${variant} PRIVATE n2ce_flags)
    target_include_directories(n2ce_kernels_${variant} PRIVATE src)
    # -O3 in every build type: without the vectoriser these files are not what they are for.
    target_compile_options(n2ce_kernels_${variant} PRIVATE -O3 ${${variant}_flags})
    target_compile_definitions(n2ce_kernels_${variant} PRIVATE N2_ISA_SUFFIX=${variant})
    list(APPEND objects $<TARGET_OBJECTS:n2ce_kernels_${variant}>)
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
