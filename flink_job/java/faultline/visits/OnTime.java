package faultline.visits;

import java.util.Arrays;
import java.util.Iterator;

import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.utils.JoinedRowData;

/**
 * Adds the column is_late to each visit, and sends the watermark that closes windows.
 *
 * <p>A visit is late when its partition's clock has passed its window. The clock of a partition is its newest event time,
 * minus the out-of-orderness bound, rounded down to the end of a window. It is in the checkpoint, one number per
 * partition: a restored job decides as if it had never stopped, at any parallelism.
 *
 * <p>The watermark is the minimum of the clocks. An idle partition must not hold it back: after idleSeconds in which
 * Flink's own watermark moved and the partition had no visit, its clock follows that watermark.
 */
public final class OnTime extends AbstractStreamOperator implements OneInputStreamOperator {
    private static final long NO_VISIT_YET = Long.MIN_VALUE;

    private final int eventTimeColumn;
    private final int partitionColumn;
    private final int partitions;
    private final long windowMs;
    private final long slideMs;
    private final long boundMs;
    private final int idleSeconds;

    private transient ListState saved;
    /** The partitions that come to this task. */
    private transient int[] mine;
    /** By partition: windows that end here or before are closed. */
    private transient long[] clocks;
    /** By partition: seconds without a visit, while others had some. */
    private transient int[] quietSeconds;
    private transient long second;
    private transient long watermark;

    private transient JoinedRowData decided;
    private transient GenericRowData isLate;

    public OnTime(
        int eventTimeColumn, int partitionColumn, int partitions,
        long windowMs, long slideMs, long boundMs, int idleSeconds
    ) {
        this.eventTimeColumn = eventTimeColumn;
        this.partitionColumn = partitionColumn;
        this.partitions = partitions;
        this.windowMs = windowMs;
        this.slideMs = slideMs;
        this.boundMs = boundMs;
        this.idleSeconds = idleSeconds;
    }

    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        TypeInformation pair = Types.TUPLE(new TypeInformation[] {Types.INT, Types.LONG});
        // Every task gets all pairs: another parallelism gives the partitions to other tasks.
        saved = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor("partition-clocks", pair));
        clocks = new long[partitions];
        Arrays.fill(clocks, NO_VISIT_YET);
        int before = 0;
        Iterator pairs = ((Iterable) saved.get()).iterator();
        while (pairs.hasNext()) {
            Tuple2 clock = (Tuple2) pairs.next();
            int partition = ((Integer) clock.f0).intValue();
            before = Math.max(before, partition + 1);
            partition %= partitions;
            clocks[partition] = Math.max(clocks[partition], ((Long) clock.f1).longValue());
        }
        // A partition that is new shared a clock before; behind it the window operator drops visits without a trace.
        for (int partition = before; before > 0 && partition < partitions; partition++) {
            clocks[partition] = clocks[partition % before];
        }
        mine = new int[partitions];
        int count = 0;
        int tasks = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
        for (int partition = 0; partition < partitions; partition++) {
            if (ByPartition.task(partition, tasks) == getRuntimeContext().getTaskInfo().getIndexOfThisSubtask()) {
                mine[count++] = partition;
            }
        }
        mine = Arrays.copyOf(mine, count);
        quietSeconds = new int[partitions];
        watermark = Long.MIN_VALUE;
    }

    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        saved.clear();
        for (int partition : mine) {
            saved.add(Tuple2.of(Integer.valueOf(partition), Long.valueOf(clocks[partition])));
        }
    }

    public void open() throws Exception {
        super.open();
        decided = new JoinedRowData();
        isLate = new GenericRowData(1);
        if (mine.length == 0) {
            // No partition comes to this task, so it must not hold back the watermark.
            output.emitWatermarkStatus(WatermarkStatus.IDLE);
        }
    }

    public void processElement(StreamRecord record) {
        RowData row = (RowData) record.getValue();
        boolean late = false;
        if (!row.isNullAt(eventTimeColumn)) {
            long eventTime = row.getLong(eventTimeColumn);
            int partition = row.getInt(partitionColumn) % partitions;
            quietSeconds[partition] = 0;
            late = startOfWindow(eventTime) + windowMs <= clocks[partition];
            clocks[partition] = Math.max(clocks[partition], startOfWindow(eventTime - boundMs));
        }
        isLate.setField(0, Boolean.valueOf(late));
        decided.replace(row, isLate);
        decided.setRowKind(row.getRowKind());
        output.collect(record.replace(decided));
        advance();
    }

    /** Flink's own watermark: the minimum of the partitions that have visits at present, minus the bound. */
    public void processWatermark(Watermark mark) {
        long now = System.currentTimeMillis() / 1000;
        for (int partition = 0; partition < partitions; partition++) {
            if (now != second) {
                quietSeconds[partition]++;
            }
            if (quietSeconds[partition] > idleSeconds) {
                clocks[partition] = Math.max(clocks[partition], startOfWindow(mark.getTimestamp()));
            }
        }
        second = now;
        advance();
    }

    /** Kept here: a task behind an idle one would go on without it and could pass the windows of its next visits. */
    public void processWatermarkStatus(WatermarkStatus status) {
    }

    private void advance() {
        long closed = Long.MAX_VALUE;
        for (int partition : mine) {
            closed = Math.min(closed, clocks[partition]);
        }
        if (closed != Long.MAX_VALUE && closed != NO_VISIT_YET && closed - 1 > watermark) {
            watermark = closed - 1;
            output.emitWatermark(new Watermark(watermark));
        }
    }

    /** The start of the last window that contains a time: a multiple of the slide, so windows end there, too. */
    private long startOfWindow(long time) {
        return Math.floorDiv(time, slideMs) * slideMs;
    }
}
