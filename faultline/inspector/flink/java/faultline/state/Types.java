package faultline.state;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.common.typeutils.CompositeTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.api.java.typeutils.runtime.PojoSerializerSnapshot;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.shaded.asm9.org.objectweb.asm.ClassWriter;
import org.apache.flink.shaded.asm9.org.objectweb.asm.Opcodes;
import org.apache.flink.util.LinkedOptionalMap;

/**
 * Serializers as a checkpoint describes them, without the job's classes.
 *
 * <p>Flink's descriptions name classes, and reading a description looks them up. A class that is not here is replaced
 * by an empty one, so that the description can be read on. A POJO's description has the names and the types of its
 * fields: enough to read the POJO as fields. Any other type of a missing class is unknown.
 */
final class Types extends ClassLoader {
    Types(ClassLoader parent) {
        super(parent);
    }

    /** The type of a state cannot be read here; the message names it. */
    static final class MissingType extends IOException {
        MissingType(String name) {
            super(name);
        }
    }

    protected Class findClass(String name) {
        ClassWriter written = new ClassWriter(0);
        written.visit(Opcodes.V1_8, Opcodes.ACC_PUBLIC, name.replace('.', '/'), null, "java/lang/Object", null);
        written.visitEnd();
        byte[] content = written.toByteArray();
        return defineClass(name, content, 0, content.length);
    }

    private boolean isMissing(Class type) {
        return type != null && type.getClassLoader() == this;
    }

    /** Returns the serializer of a snapshot. Throws MissingType when it needs a class that is not here. */
    TypeSerializer serializer(TypeSerializerSnapshot snapshot) throws IOException {
        if (snapshot == null) {
            throw new MissingType("a type whose description cannot be read");
        }
        try {
            if (snapshot instanceof PojoSerializerSnapshot) {
                Object data = field(snapshot, "snapshotData");
                Class type = (Class) field(data, "pojoClass");
                if (isMissing(type)) {
                    LinkedOptionalMap fields = (LinkedOptionalMap) field(data, "fieldSerializerSnapshots");
                    return new Fields(type.getName(), fields, this);
                }
            } else if (snapshot instanceof CompositeTypeSerializerSnapshot) {
                return composite((CompositeTypeSerializerSnapshot) snapshot);
            }
            TypeSerializer found = snapshot.restoreSerializer();
            if (found instanceof KryoSerializer) {
                Class type = (Class) field(found, "type");
                if (isMissing(type)) {
                    throw new MissingType(type.getName());
                }
            } else {
                Object made = found.createInstance();
                if (made != null && isMissing(made.getClass())) {
                    throw new MissingType(made.getClass().getName());
                }
            }
            return found;
        } catch (MissingType missing) {
            throw missing;
        } catch (Throwable failed) {
            throw new MissingType(snapshot.getClass().getSimpleName() + ", " + failed);
        }
    }

    /** Makes the serializer of lists, maps, tuples and the like from those of its parts. */
    private TypeSerializer composite(CompositeTypeSerializerSnapshot snapshot) throws Throwable {
        TypeSerializerSnapshot[] nested = snapshot.getNestedSerializerSnapshots();
        TypeSerializer[] parts = new TypeSerializer[nested.length];
        for (int at = 0; at < nested.length; at++) {
            parts[at] = serializer(nested[at]);
        }
        Class parameter = TypeSerializer[].class;
        for (Class type = snapshot.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Method make = type.getDeclaredMethod(
                    "createOuterSerializerWithNestedSerializers", new Class[] {parameter});
                make.setAccessible(true);
                return (TypeSerializer) make.invoke(snapshot, new Object[] {parts});
            } catch (NoSuchMethodException inParent) {
                continue;
            } catch (InvocationTargetException failed) {
                throw failed.getCause();
            }
        }
        return snapshot.restoreSerializer();
    }

    /** The value of a field, looked for in the object's class and its parents. */
    static Object field(Object target, String name) throws IOException {
        for (Class type = target.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field found = type.getDeclaredField(name);
                found.setAccessible(true);
                return found.get(target);
            } catch (NoSuchFieldException inParent) {
                continue;
            } catch (IllegalAccessException closed) {
                throw new IOException(closed);
            }
        }
        throw new IOException("this Flink has no field " + name + " in " + target.getClass().getName());
    }

    /** Reads a POJO whose class is not here as a map of its fields, in the format of Flink's PojoSerializer. */
    static final class Fields extends TypeSerializerSingleton {
        private static final int IS_NULL = 1;
        private static final int NO_SUBCLASS = 2;

        private final String type;
        private final List names = new ArrayList();
        private final List serializers = new ArrayList();

        Fields(String type, LinkedOptionalMap fields, Types types) throws Throwable {
            this.type = type;
            final List snapshots = new ArrayList();
            fields.forEach(new LinkedOptionalMap.ConsumerWithException() {
                public void accept(String name, Object field, Object snapshot) {
                    names.add(name);
                    snapshots.add(snapshot);
                }
            });
            for (int at = 0; at < snapshots.size(); at++) {
                serializers.add(types.serializer((TypeSerializerSnapshot) snapshots.get(at)));
            }
        }

        public Object deserialize(DataInputView in) throws IOException {
            int flags = in.readByte();
            if ((flags & IS_NULL) != 0) {
                return null;
            }
            if ((flags & NO_SUBCLASS) == 0) {
                throw new MissingType("a subclass of " + type);
            }
            Map found = new LinkedHashMap();
            for (int at = 0; at < names.size(); at++) {
                boolean isNull = in.readBoolean();
                found.put(names.get(at), isNull ? null : ((TypeSerializer) serializers.get(at)).deserialize(in));
            }
            return found;
        }

        TypeSerializer of(String name) {
            return (TypeSerializer) serializers.get(names.indexOf(name));
        }

        public Object deserialize(Object reuse, DataInputView in) throws IOException {
            return deserialize(in);
        }

        public boolean isImmutableType() {
            return true;
        }

        public Object createInstance() {
            return null;
        }

        public Object copy(Object from) {
            return from;
        }

        public Object copy(Object from, Object reuse) {
            return from;
        }

        public int getLength() {
            return -1;
        }

        public void serialize(Object record, DataOutputView target) {
            throw new UnsupportedOperationException("the inspector only reads");
        }

        public void copy(DataInputView source, DataOutputView target) {
            throw new UnsupportedOperationException("the inspector only reads");
        }

        public TypeSerializerSnapshot snapshotConfiguration() {
            throw new UnsupportedOperationException("the inspector only reads");
        }
    }
}
