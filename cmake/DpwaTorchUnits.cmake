# dpwa_torch_units(VARIABLE PROCESSORS MEMORY_MIB): how many units that include torch compile at a time.
function(dpwa_torch_units variable processors memory_mib)
  math(EXPR units "${memory_mib} * 3 / 4 / 1434")  # 1.4 GiB
  if(processors GREATER 0 AND units GREATER processors)
    set(units ${processors})
  endif()
  if(units LESS 1)
    set(units 1)
  endif()
  set(${variable} ${units} PARENT_SCOPE)
endfunction()
