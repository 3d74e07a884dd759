package faultline.state;

import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.FullSnapshotUtil;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsSavepointStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.SnappyStreamCompressionDecorator;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.UncompressedStreamCompressionDecorator;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.NativeLibraryLoader;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Status;

/**
 * Reads keyed state and timers from the files of a state handle, entry by entry.
 *
 * <p>Three formats: the heap backend's (HeapRestoreOperation), the canonical one of savepoints and of RocksDB's full
 * checkpoints (FullSnapshotRestoreOperation), and RocksDB's own files. In the last two a key and a value have a length:
 * one that cannot be read does not hide the next.
 */
final class KeyedFiles {
    /** RocksDBKeyedStateBackend's merge operator, by which it appends to list state. */
    private static final String MERGE_OPERATOR = "stringappendtest";

    private final Types types;
    private final int keyGroupBytes;
    private final Row.Sink sink;
    private final Row row = new Row();
    private final DataInputDeserializer keyIn = new DataInputDeserializer();
    private final DataInputDeserializer valueIn = new DataInputDeserializer();
    private final ListDelimitedSerializer lists = new ListDelimitedSerializer();

    KeyedFiles(Types types, int maxParallelism, Row.Sink sink) {
        this.types = types;
        this.keyGroupBytes = CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(maxParallelism);
        this.sink = sink;
    }

    /** A state as the file's header describes it; `missing`: the type that is not here, null when all are. */
    private final class State {
        final String name;
        final String kind;
        final boolean isTimers;
        TypeSerializer key;
        TypeSerializer namespace;
        TypeSerializer value;
        String missing;
        /** Of the heap format: what was not read. */
        long entries;
        long bytes;

        State(StateMetaInfoSnapshot meta, KeyedBackendSerializationProxy header) {
            name = meta.getName();
            isTimers = meta.getBackendStateType() == StateMetaInfoSnapshot.BackendStateType.PRIORITY_QUEUE;
            String type = (String) meta.getOptionsImmutable().get("KEYED_STATE_TYPE");
            kind = isTimers ? "timers" : type == null ? "unknown" : type.toLowerCase();
            try {
                if (!isTimers) {
                    key = types.serializer(header.getKeySerializerSnapshot());
                    namespace = types.serializer(meta.getTypeSerializerSnapshot("NAMESPACE_SERIALIZER"));
                }
                value = types.serializer(meta.getTypeSerializerSnapshot("VALUE_SERIALIZER"));
            } catch (IOException unknown) {
                missing = unknown.getMessage();
            }
        }
    }

    private List states(KeyedBackendSerializationProxy header) {
        List found = new ArrayList();
        for (Object each : header.getStateMetaInfoSnapshots()) {
            State state = new State((StateMetaInfoSnapshot) each, header);
            sink.state(state.name, state.kind);
            found.add(state);
        }
        return found;
    }

    private KeyedBackendSerializationProxy header(DataInputView in) throws IOException {
        KeyedBackendSerializationProxy header = new KeyedBackendSerializationProxy(types);
        try {
            header.read(in);
        } catch (EOFException cut) {
            throw cut;
        } catch (Throwable unknown) {
            throw new Types.MissingType(String.valueOf(unknown.getMessage()));
        }
        return header;
    }

    /** Reads everything that a handle has; one that says nothing here can read it is named with its size. */
    void read(KeyedStateHandle handle) throws Exception {
        String why;
        try {
            if (handle instanceof IncrementalRemoteKeyedStateHandle) {
                rocks((IncrementalRemoteKeyedStateHandle) handle);
                return;
            } else if (handle instanceof KeyGroupsStateHandle) {
                keyGroups((KeyGroupsStateHandle) handle);
                return;
            }
            why = handle instanceof ChangelogStateBackendHandle
                ? "the changelog state backend keeps it as changes, which Flink applies in a running task alone;"
                    + " take a savepoint in canonical format to look inside"
                : "it is of a state backend that is not known here (" + handle.getClass().getSimpleName() + ")";
        } catch (Types.MissingType unknown) {
            why = unknown.getMessage();
        }
        sink.unread("keyed state", "unknown", why, -1, handle.getStateSize());
    }

    private void keyGroups(KeyGroupsStateHandle handle) throws Exception {
        FSDataInputStream in = handle.openInputStream();
        try {
            DataInputViewStreamWrapper view = new DataInputViewStreamWrapper(in);
            KeyedBackendSerializationProxy header = header(view);
            StreamCompressionDecorator compression = header.isUsingKeyGroupCompression()
                ? SnappyStreamCompressionDecorator.INSTANCE
                : UncompressedStreamCompressionDecorator.INSTANCE;
            List states = states(header);
            boolean isOfHeap = !(handle instanceof KeyGroupsSavepointStateHandle) && isOfHeap(handle, states.size(), in, view);
            Iterator groups = handle.getGroupRangeOffsets().iterator();
            long[] offsets = new long[handle.getKeyGroupRange().getNumberOfKeyGroups()];
            for (int at = 0; at < offsets.length; at++) {
                offsets[at] = ((Long) ((Tuple2) groups.next()).f1).longValue();
            }
            for (int at = 0; at < offsets.length; at++) {
                if (offsets[at] == 0 && !isOfHeap) {
                    continue;
                }
                in.seek(offsets[at] + (isOfHeap ? 4 : 0));
                InputStream group = compression.decorateWithCompression(in);
                DataInputViewStreamWrapper content = new DataInputViewStreamWrapper(group);
                if (!isOfHeap) {
                    canonical(content, states);
                } else {
                    boolean isLast = at + 1 == offsets.length;
                    heap(content, states, in, isLast ? handle.getStateSize() : offsets[at + 1]);
                }
            }
            for (Object each : states) {
                State state = (State) each;
                if (state.missing != null && isOfHeap) {
                    sink.unread(state.name, state.kind, state.missing, state.entries, state.bytes);
                }
            }
        } finally {
            in.close();
        }
    }

    /** The heap backend begins each key group with its number; RocksDB's full checkpoints with a state and a key. */
    private static boolean isOfHeap(KeyGroupsStateHandle handle, int states, FSDataInputStream in, DataInputView view)
        throws IOException {
        for (Object each : handle.getGroupRangeOffsets()) {
            int group = ((Integer) ((Tuple2) each).f0).intValue();
            long offset = ((Long) ((Tuple2) each).f1).longValue();
            if (group == 0) {
                continue;
            }
            if (offset == 0) {
                return false;
            }
            in.seek(offset);
            return view.readInt() == group;
        }
        in.seek(handle.getOffsetForKeyGroup(0));
        if (view.readInt() != 0) {
            return false;
        }
        // RocksDB's first bytes may be 0, too: those of its first state and of a key's length, which goes on here.
        int state = view.readShort() & 0xFFFF;
        if (state == 0 || state >= states) {
            return state == 0;
        }
        in.seek(handle.getStateSize() - 2);
        return (view.readShort() & FullSnapshotUtil.END_OF_KEY_GROUP_MARK) != FullSnapshotUtil.END_OF_KEY_GROUP_MARK;
    }

    private void heap(DataInputView in, List states, FSDataInputStream file, long end) throws Exception {
        for (int number = 0; number < states.size(); number++) {
            State state = (State) states.get(in.readShort());
            int entries = in.readInt();
            if (entries > 0 && state.missing == null) {
                try {
                    for (int at = 0; at < entries; at++) {
                        heapEntry(in, state);
                    }
                    continue;
                } catch (EOFException cut) {
                    throw cut;
                } catch (InterruptedException stopped) {
                    throw stopped;
                } catch (Exception unknown) {
                    state.missing = String.valueOf(unknown.getMessage());
                }
            }
            if (entries == 0) {
                continue;
            }
            // It has no length: what follows it in this key group cannot be found.
            state.entries += entries;
            state.bytes += Math.max(0, end - file.getPos());
            for (int behind = number + 1; behind < states.size(); behind++) {
                State lost = (State) states.get(behind);
                if (lost.missing == null) {
                    lost.missing = "it lies behind state " + state.name + ", of unknown type " + state.missing;
                    lost.entries = -1;
                    lost.bytes = -1;
                }
            }
            return;
        }
    }

    private void heapEntry(DataInputView in, State state) throws Exception {
        row.clear();
        row.state = state.name;
        row.kind = state.kind;
        if (state.isTimers) {
            timer(state, in);
            return;
        }
        row.namespace = state.namespace.deserialize(in);
        row.key = state.key.deserialize(in);
        row.keyType = state.key;
        row.value = state.value.deserialize(in);
        row.valueType = state.value;
        if (!(state.value instanceof MapSerializer) || !state.kind.equals("map")) {
            sink.row(row);
            return;
        }
        row.entryType = ((MapSerializer) state.value).getKeySerializer();
        row.valueType = ((MapSerializer) state.value).getValueSerializer();
        for (Object each : ((Map) row.value).entrySet()) {
            row.entry = ((Map.Entry) each).getKey();
            row.value = ((Map.Entry) each).getValue();
            sink.row(row);
        }
    }

    private void timer(State state, DataInputView in) throws Exception {
        TimerHeapInternalTimer timer = (TimerHeapInternalTimer) state.value.deserialize(in);
        row.key = timer.getKey();
        row.keyType = (TypeSerializer) Types.field(state.value, "keySerializer");
        row.namespace = timer.getNamespace();
        row.value = Long.valueOf(timer.getTimestamp());
        sink.row(row);
    }

    private void canonical(DataInputView in, List states) throws Exception {
        int id = in.readShort() & FullSnapshotUtil.END_OF_KEY_GROUP_MARK;
        while (id != FullSnapshotUtil.END_OF_KEY_GROUP_MARK) {
            byte[] key = BytePrimitiveArraySerializer.INSTANCE.deserialize(in);
            byte[] value = BytePrimitiveArraySerializer.INSTANCE.deserialize(in);
            State state = (State) states.get(id);
            if (FullSnapshotUtil.hasMetaDataFollowsFlag(key)) {
                FullSnapshotUtil.clearMetaDataFollowsFlag(key);
                id = in.readShort() & FullSnapshotUtil.END_OF_KEY_GROUP_MARK;
            }
            entry(state, key, value);
        }
    }

    /** Reads a key and a value in RocksDB's format: key group, key, namespace, and a map's key; of timers the timer. */
    private void entry(State state, byte[] key, byte[] value) throws Exception {
        row.clear();
        row.state = state.name;
        row.kind = state.kind;
        keyIn.setBuffer(key, keyGroupBytes, key.length - keyGroupBytes);
        try {
            if (state.isTimers && state.value != null) {
                timer(state, keyIn);
                return;
            }
            if (state.key == null || state.namespace == null) {
                throw new Types.MissingType(state.missing);
            }
            boolean isAmbiguous = CompositeKeySerializationUtils.isAmbiguousKeyPossible(state.key, state.namespace);
            row.key = CompositeKeySerializationUtils.readKey(state.key, keyIn, isAmbiguous);
            row.keyType = state.key;
            row.namespace = CompositeKeySerializationUtils.readNamespace(state.namespace, keyIn, isAmbiguous);
        } catch (InterruptedException stopped) {
            throw stopped;
        } catch (Exception unknown) {
            row.key = new Row.Unknown(why(state, unknown), key);
            row.keyType = null;
        }
        try {
            if (state.missing != null) {
                throw new Types.MissingType(state.missing);
            }
            value(state, value);
        } catch (Exception unknown) {
            if (state.kind.equals("map") && keyIn.available() > 0) {
                byte[] rest = new byte[keyIn.available()];
                keyIn.readFully(rest);
                row.entry = new Row.Unknown(why(state, unknown), rest);
            }
            row.value = new Row.Unknown(why(state, unknown), value);
            row.valueType = null;
        }
        sink.row(row);
    }

    private static String why(State state, Exception unknown) {
        return state.missing == null ? String.valueOf(unknown.getMessage()) : state.missing;
    }

    private void value(State state, byte[] value) throws IOException {
        row.valueType = state.value;
        if (state.kind.equals("list") && state.value instanceof ListSerializer) {
            row.value = lists.deserializeList(value, ((ListSerializer) state.value).getElementSerializer());
            return;
        }
        valueIn.setBuffer(value);
        if (state.kind.equals("map") && state.value instanceof MapSerializer) {
            row.entryType = ((MapSerializer) state.value).getKeySerializer();
            row.valueType = ((MapSerializer) state.value).getValueSerializer();
            row.entry = row.entryType.deserialize(keyIn);
            row.value = valueIn.readBoolean() ? null : row.valueType.deserialize(valueIn);
            return;
        }
        row.value = state.value.deserialize(valueIn);
    }

    /** Opens RocksDB's files, where they are or copied from a store, and reads the key groups of this handle. */
    private void rocks(IncrementalRemoteKeyedStateHandle handle) throws Exception {
        InputStream meta = handle.getMetaDataStateHandle().openInputStream();
        KeyedBackendSerializationProxy header = header(new DataInputViewStreamWrapper(meta));
        meta.close();
        File folder = Files.createTempDirectory("rocksdb", new java.nio.file.attribute.FileAttribute[0]).toFile();
        place(handle.getPrivateState(), folder);
        place(handle.getSharedState(), folder);
        NativeLibraryLoader.getInstance().loadLibrary(System.getProperty("java.io.tmpdir"));
        RocksDB.loadLibrary();
        ColumnFamilyOptions options = new ColumnFamilyOptions().setMergeOperatorName(MERGE_OPERATOR);
        List descriptors = new ArrayList();
        List families = new ArrayList();
        RocksDB db;
        try {
            for (Object name : RocksDB.listColumnFamilies(new Options(), folder.getPath())) {
                descriptors.add(new ColumnFamilyDescriptor((byte[]) name, options));
            }
            db = RocksDB.openReadOnly(new DBOptions(), folder.getPath(), descriptors, families);
        } catch (RocksDBException unopened) {
            boolean isCorrupt = unopened.getStatus() != null
                && unopened.getStatus().getCode() == Status.Code.Corruption;
            throw isCorrupt ? new IOException("RocksDB takes its files for corrupt: " + unopened.getMessage()) : unopened;
        }
        try {
            for (Object each : states(header)) {
                State state = (State) each;
                int at = 0;
                while (at < families.size() && !state.name.equals(nameOf(descriptors.get(at)))) {
                    at++;
                }
                if (at == families.size()) {
                    // Flink opens the database with one for each state.
                    throw new IOException("RocksDB takes its files for corrupt: no column family " + state.name);
                }
                family(db, (ColumnFamilyHandle) families.get(at), state, handle.getKeyGroupRange());
            }
        } finally {
            for (Object family : families) {
                ((ColumnFamilyHandle) family).close();
            }
            db.close();
            for (Object file : folder.listFiles()) {
                ((File) file).delete();
            }
        }
    }

    private static String nameOf(Object descriptor) {
        return new String(((ColumnFamilyDescriptor) descriptor).getName(), StandardCharsets.UTF_8);
    }

    private void family(RocksDB db, ColumnFamilyHandle family, State state, KeyGroupRange range) throws Exception {
        RocksIterator entries = db.newIterator(family);
        try {
            for (entries.seekToFirst(); entries.isValid(); entries.next()) {
                byte[] key = entries.key();
                // After a change of the parallelism the files may still have the groups of others.
                if (range.contains(CompositeKeySerializationUtils.extractKeyGroup(keyGroupBytes, key))) {
                    entry(state, key, entries.value());
                }
            }
            entries.status();
        } finally {
            entries.close();
        }
    }

    private static void place(List files, File folder) throws IOException {
        for (Object each : files) {
            IncrementalKeyedStateHandle.HandleAndLocalPath file = (IncrementalKeyedStateHandle.HandleAndLocalPath) each;
            java.nio.file.Path target = new File(folder, new File(file.getLocalPath()).getName()).toPath();
            StreamStateHandle handle = file.getHandle();
            Path path = (Path) handle.maybeGetPath().orElse(null);
            String simple = handle.getClass().getSimpleName();
            boolean isWhole = simple.equals("FileStateHandle") || simple.equals("RelativeFileStateHandle");
            if (isWhole && path != null && !path.getFileSystem().isDistributedFS()) {
                Files.createSymbolicLink(target, new File(path.getPath()).toPath(),
                    new java.nio.file.attribute.FileAttribute[0]);
                continue;
            }
            InputStream in = handle.openInputStream();
            try {
                Files.copy(in, target, new StandardCopyOption[] {StandardCopyOption.REPLACE_EXISTING});
            } finally {
                in.close();
            }
        }
    }
}
