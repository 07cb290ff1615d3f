"""What tests ask the simulation of CUDA: whether it is the device, and what a call launches."""

import ctypes
import os

import norch

SIMULATION = norch.cuda.is_available() and norch.cuda.get_device_properties().simulated


def launches(run):
    """How many kernels and how many graphs a call launches, in the simulation."""
    simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
    simulation.cudasim_fail.argtypes, simulation.cudasim_fail.restype = [ctypes.c_int, ctypes.c_int64], ctypes.c_int64
    for kind in (1, 3):
        simulation.cudasim_fail(kind, -1)
    run()
    return simulation.cudasim_fail(1, -1), simulation.cudasim_fail(3, -1)
