package faultline.state;

import java.io.EOFException;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;

import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.state.CompressibleFSDataInputStream;
import org.apache.flink.runtime.state.OperatorBackendSerializationProxy;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.SnappyStreamCompressionDecorator;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.UncompressedStreamCompressionDecorator;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;

/** Reads list state and broadcast state of an operator, in the format of OperatorStateRestoreOperation. */
final class OperatorFiles {
    private final Types types;
    /** Names of the states that are left out. */
    private final Collection without;
    private final Row.Sink sink;
    private final Row row = new Row();

    OperatorFiles(Types types, Collection without, Row.Sink sink) {
        this.types = types;
        this.without = without;
        this.sink = sink;
    }

    void read(OperatorStateHandle handle) throws Exception {
        if (handle.getStateNameToPartitionOffsets().isEmpty()) {
            // That of merged files has no stream then (EmptyFileMergingOperatorStreamStateHandle).
            return;
        }
        FSDataInputStream in = handle.openInputStream();
        try {
            OperatorBackendSerializationProxy header = new OperatorBackendSerializationProxy(types);
            try {
                header.read(new DataInputViewStreamWrapper(in));
            } catch (EOFException cut) {
                throw cut;
            } catch (Throwable unknown) {
                String why = String.valueOf(unknown.getMessage());
                sink.unread("operator state", "unknown", why, -1, handle.getStateSize());
                return;
            }
            boolean isCompressed = ((Boolean) Types.field(header, "usingStateCompression")).booleanValue();
            StreamCompressionDecorator compression = isCompressed
                ? SnappyStreamCompressionDecorator.INSTANCE
                : UncompressedStreamCompressionDecorator.INSTANCE;
            Map states = new HashMap();
            for (Object each : header.getOperatorStateMetaInfoSnapshots()) {
                states.put(((StateMetaInfoSnapshot) each).getName(), each);
            }
            for (Object each : header.getBroadcastStateMetaInfoSnapshots()) {
                states.put(((StateMetaInfoSnapshot) each).getName(), each);
            }
            TreeSet starts = new TreeSet();
            for (Object each : handle.getStateNameToPartitionOffsets().values()) {
                long[] offsets = ((OperatorStateHandle.StateMetaInfo) each).getOffsets();
                for (int at = 0; at < offsets.length; at++) {
                    starts.add(Long.valueOf(offsets[at]));
                }
            }
            starts.add(Long.valueOf(handle.getStateSize()));
            for (Object each : handle.getStateNameToPartitionOffsets().entrySet()) {
                Map.Entry pair = (Map.Entry) each;
                if (without.contains(pair.getKey())) {
                    continue;
                }
                FSDataInputStream content = new CompressibleFSDataInputStream(in, compression);
                row.clear();
                row.state = (String) pair.getKey();
                StateMetaInfoSnapshot meta = (StateMetaInfoSnapshot) states.get(pair.getKey());
                state(meta, (OperatorStateHandle.StateMetaInfo) pair.getValue(), content, starts);
            }
        } finally {
            in.close();
        }
    }

    private void state(
        StateMetaInfoSnapshot meta, OperatorStateHandle.StateMetaInfo places, FSDataInputStream in, TreeSet starts
    ) throws Exception {
        String mode = places.getDistributionMode().name();
        boolean isBroadcast = mode.equals("BROADCAST");
        row.kind = isBroadcast ? "broadcast" : mode.equals("UNION") ? "union list" : "split list";
        sink.state(row.state, row.kind);
        DataInputView view = new DataInputViewStreamWrapper(in);
        long[] offsets = places.getOffsets();
        long bytes = 0;
        for (int at = 0; at < offsets.length; at++) {
            bytes += ((Long) starts.higher(Long.valueOf(offsets[at]))).longValue() - offsets[at];
        }
        try {
            if (meta == null) {
                throw new Types.MissingType("nothing describes its type");
            }
            TypeSerializer values = types.serializer(meta.getTypeSerializerSnapshot("VALUE_SERIALIZER"));
            row.valueType = values;
            if (isBroadcast) {
                row.keyType = types.serializer(meta.getTypeSerializerSnapshot("KEY_SERIALIZER"));
                for (int at = 0; at < Math.min(1, offsets.length); at++) {
                    in.seek(offsets[at]);
                    int entries = view.readInt();
                    for (int number = 0; number < entries; number++) {
                        row.key = row.keyType.deserialize(view);
                        row.value = values.deserialize(view);
                        sink.row(row);
                    }
                }
                return;
            }
            for (int at = 0; at < offsets.length; at++) {
                in.seek(offsets[at]);
                row.value = values.deserialize(view);
                sink.row(row);
            }
        } catch (EOFException cut) {
            throw cut;
        } catch (InterruptedException stopped) {
            throw stopped;
        } catch (Exception unknown) {
            sink.unread(row.state, row.kind, String.valueOf(unknown.getMessage()), isBroadcast ? -1 : offsets.length, bytes);
        }
    }
}
