"""A move with an installed package and nothing beside it: ./dev wheel runs this in new environments."""

import pathlib

import numpy
import reshard

assert pathlib.Path(reshard.__file__).is_relative_to(pathlib.Path.cwd()), reshard.__file__
source = reshard.parse_layout("x=2,y=3", "f32[12@x,5]")
target = reshard.parse_layout("x=2,y=3", "f32[12,5@y]")
plan = reshard.synthesize(source, target)
array = numpy.arange(60, dtype=numpy.float32).reshape(12, 5)
moved = reshard.local(6).redistribute(reshard.split(array, source), source, target)
for held, wanted in zip(moved, reshard.split(array, target)):
    numpy.testing.assert_array_equal(held, wanted)
print(plan)
