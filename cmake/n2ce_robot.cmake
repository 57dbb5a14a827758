# MuJoCo for the robots of "study bbo" (src/design/mujoco.c): its header at build time, its library when a
# task wants it. Without the header everything is built, and these tasks say what is missing.
option(N2CE_MUJOCO "Use MuJoCo where its header is found" ON)
set(robot_definitions "")
if(N2CE_MUJOCO)
  find_path(MUJOCO_INCLUDE mujoco/mujoco.h)
endif()
if(N2CE_MUJOCO AND MUJOCO_INCLUDE)
  list(APPEND robot_definitions N2CE_MUJOCO)
else()
  message(STATUS "Robots: without MuJoCo")
endif()
