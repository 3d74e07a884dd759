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


def getter(jvm: Any, class_name: str, name: str) -> Any:
    """Build a java.util.function.Function that reads a public field: JVM-side loops without a call per element."""
    kinds = jvm.java.lang.Class
    handle = jvm.java.lang.invoke.MethodHandles.publicLookup().findGetter(
        kinds.forName(class_name), name, kinds.forName("java.lang.Object")
    )
    return jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
        kinds.forName("java.util.function.Function"), handle
    )


def method(jvm: Any, class_name: str, name: str) -> Any:
    """Build a java.util.function.Function that calls a public method without parameters, which returns an object."""
    kinds, invoke = jvm.java.lang.Class, jvm.java.lang.invoke
    return invoke.MethodHandleProxies.asInterfaceInstance(
        kinds.forName("java.util.function.Function"), _handle(jvm, class_name, name)
    )


def first_long(jvm: Any, class_name: str, name: str) -> Any:
    """Build a java.util.function.ToLongFunction: the first field of the RowData that the method returns, a BIGINT."""
    kinds, invoke = jvm.java.lang.Class, jvm.java.lang.invoke
    row_data = kinds.forName("org.apache.flink.table.data.RowData")
    number = jvm.java.lang.Integer.TYPE
    get_long = invoke.MethodHandles.publicLookup().findVirtual(
        row_data, "getLong", invoke.MethodType.methodType(jvm.java.lang.Long.TYPE, number)
    )
    position = jvm.java.lang.reflect.Array.newInstance(kinds.forName("java.lang.Object"), 1)
    position[0] = 0
    given = _handle(jvm, class_name, name).asType(invoke.MethodType.methodType(row_data, kinds.forName(class_name)))
    return invoke.MethodHandleProxies.asInterfaceInstance(
        kinds.forName("java.util.function.ToLongFunction"),
        invoke.MethodHandles.filterReturnValue(given, invoke.MethodHandles.insertArguments(get_long, 1, position)),
    )


def _handle(jvm: Any, class_name: str, name: str) -> Any:
    kinds, invoke = jvm.java.lang.Class, jvm.java.lang.invoke
    returned = invoke.MethodType.methodType(kinds.forName("java.lang.Object"))
    return invoke.MethodHandles.publicLookup().findVirtual(kinds.forName(class_name), name, returned)
