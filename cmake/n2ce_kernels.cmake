# n2ce_add_kernels(LIKE OUT EXACT FUSED): compiles kernel files once per instruction set
# (src/base/isa.h) for the target LIKE; OUT becomes the list of their objects. EXACT files round
# where they say so; FUSED files may contract products and sums.
include(CheckCSourceCompiles)
check_c_source_compiles("
  #ifndef __x86_64__
  #error not x86-64
  #endif
  int main(void) { return 0; }" N2CE_X86)

function(n2ce_add_kernels like out exact fused)
  set(portable_flags "")
  set(avx2_flags -mavx2 -mfma -mbmi)
  set(avx512_flags -mavx2 -mfma -mbmi -mavx512f -mavx512dq -mavx512bw -mavx512vl
      -mprefer-vector-width=512)
  set(exact_flags -ffp-contract=off)
  set(fused_flags -ffp-contract=fast)
  # src/engine/accesses.h tells what they read and write. A source's own options come last, and count.
  if(N2CE_SANITIZE STREQUAL "thread")
    set_source_files_properties(${fused} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
  endif()
  set(variants portable)
  if(N2CE_X86)
    list(APPEND variants avx2 avx512)
    target_compile_definitions(${like} PRIVATE N2CE_X86)
  endif()
  set(objects "")
  foreach(variant IN LISTS variants)
    foreach(rounding IN ITEMS exact fused)
      set(name n2ce_${rounding}_${variant})
      add_library(${name} OBJECT ${${rounding}})
      target_link_libraries(${name} PRIVATE n2ce_flags)
      target_include_directories(${name} PRIVATE src)
      # -O3 in every build type: without the vectoriser these files are not what they are for.
      target_compile_options(${name} PRIVATE -O3 ${${rounding}_flags} ${${variant}_flags})
      target_compile_definitions(${name} PRIVATE N2_ISA_SUFFIX=${variant})
      list(APPEND objects $<TARGET_OBJECTS:${name}>)
    endforeach()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
