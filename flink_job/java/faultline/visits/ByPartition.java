package faultline.visits;

import org.apache.flink.api.common.functions.Partitioner;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.table.data.RowData;

/** Sends all records of a Kafka partition to one task, in their order, the partitions evenly over the tasks. */
public final class ByPartition implements KeySelector, Partitioner {
    private final int partitionColumn;
    private final int partitions;

    public ByPartition(int partitionColumn, int partitions) {
        this.partitionColumn = partitionColumn;
        this.partitions = partitions;
    }

    public Object getKey(Object row) {
        return Integer.valueOf(((RowData) row).getInt(partitionColumn) % partitions);
    }

    public int partition(Object partition, int tasks) {
        return task(((Integer) partition).intValue(), tasks);
    }

    /** The task of a partition: OnTime relies on it, too. */
    static int task(int partition, int tasks) {
        return partition % tasks;
    }
}
