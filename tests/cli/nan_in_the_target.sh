# NaN is no place to aim at.
n2ce study gaussian --target 1,nan
