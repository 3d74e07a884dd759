"""Access to Flink's classes and fields that are not public, where its readers offer no public way."""

from __future__ import annotations

from typing import Any


def new(jvm: Any, name: str) -> Any:
    """Make an instance by the constructor without parameters, public or not."""
    reflect = jvm.java.lang.reflect.Array
    constructor = jvm.java.lang.Class.forName(name).getDeclaredConstructor(
        reflect.newInstance(jvm.java.lang.Class.forName("java.lang.Class"), 0)
    )
    constructor.setAccessible(True)
    return constructor.newInstance(reflect.newInstance(jvm.java.lang.Class.forName("java.lang.Object"), 0))


def field(target: Any, name: str) -> Any:
    """Value of a field, looked for in the object's class and its parents."""
    kind = target.getClass()
    while name not in {each.getName() for each in kind.getDeclaredFields()}:
        kind = kind.getSuperclass()
    found = kind.getDeclaredField(name)
    found.setAccessible(True)
    return found.get(target)
