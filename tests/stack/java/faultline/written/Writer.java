package faultline.written;

import java.io.File;
import java.net.URI;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.util.Collector;

/** Writes savepoints of a job with states of many kinds, in a cluster of this process. */
public final class Writer {
    /** Numbers that the two steps have in their state. */
    static final AtomicLong KEPT = new AtomicLong();

    private Writer() {
    }

    /** Sends the numbers 1 to `last`, then waits for its end. */
    public static final class Numbers implements SourceFunction {
        private final long last;
        private volatile boolean isRunning = true;

        Numbers(long last) {
            this.last = last;
        }

        public void run(SourceFunction.SourceContext context) throws Exception {
            for (long number = 1; number <= last && isRunning; number++) {
                context.collect(Long.valueOf(number));
            }
            while (isRunning) {
                Thread.sleep(20);
            }
        }

        public void cancel() {
            isRunning = false;
        }
    }

    public static final class ByNumber implements KeySelector {
        public Object getKey(Object number) {
            return "k" + number;
        }
    }

    /** Keeps for each key a POJO, two entries of a map, a list of two, and an event-time timer. */
    public static final class Orders extends KeyedProcessFunction {
        private transient ValueState order;
        private transient MapState counts;
        private transient ListState names;

        public void open(OpenContext context) {
            names = getRuntimeContext().getListState(new ListStateDescriptor("names", Types.STRING));
            counts = getRuntimeContext().getMapState(new MapStateDescriptor("counts", Types.STRING, Types.LONG));
            order = getRuntimeContext().getState(new ValueStateDescriptor("order", Types.POJO(Order.class)));
        }

        public void processElement(Object value, KeyedProcessFunction.Context context, Collector out) throws Exception {
            long number = ((Long) value).longValue();
            Order kept = new Order();
            kept.number = number;
            kept.name = "order " + number;
            kept.total = number % 2 == 0 ? null : Double.valueOf(number / 2.0);
            order.update(kept);
            counts.put("once", Long.valueOf(number));
            counts.put("twice", Long.valueOf(2 * number));
            names.add("first");
            names.add("n" + number);
            context.timerService().registerEventTimeTimer(1000 * number);
            KEPT.incrementAndGet();
        }
    }

    /** Keeps for each key what only its own class describes. */
    public static final class Baskets extends KeyedProcessFunction {
        private transient ValueState basket;

        public void open(OpenContext context) {
            TypeInformation type = new GenericTypeInfo(Basket.class);
            basket = getRuntimeContext().getState(new ValueStateDescriptor("basket", type));
        }

        public void processElement(Object value, KeyedProcessFunction.Context context, Collector out) throws Exception {
            basket.update(new Basket(((Long) value).longValue()));
            KEPT.incrementAndGet();
        }
    }

    private static long newest(File checkpoints) {
        long found = 0;
        for (String name : checkpoints.list()) {
            if (name.startsWith("chk-") && new File(new File(checkpoints, name), "_metadata").exists()) {
                found = Math.max(found, Long.parseLong(name.substring(4)));
            }
        }
        return found;
    }

    /**
     * Writes state of `keys` keys in `groups` key groups, and returns the paths: a canonical savepoint, one in the
     * backend's own format, and a checkpoint.
     */
    public static String[] run(String folder, String backend, long keys, int groups) throws Exception {
        Configuration options = new Configuration();
        options.setString("state.backend.type", backend);
        options.setString("execution.checkpointing.dir", folder);
        options.setString("execution.checkpointing.data-inline-threshold", "0");
        options.setString("rest.bind-address", "127.0.0.1");
        options.setString("rest.bind-port", "0");
        options.setString("execution.checkpointing.interval", "100ms");
        options.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        options.setString("pipeline.max-parallelism", String.valueOf(groups));
        options.setString("io.tmp.dirs", System.getProperty("java.io.tmpdir"));
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(Math.min(2, groups), options);
        KEPT.set(0);
        DataStream numbers = job.addSource(new Numbers(keys), "numbers", Types.LONG).uid("numbers");
        numbers.keyBy(new ByNumber(), Types.STRING).process(new Orders(), Types.LONG).uid("orders")
            .sinkTo(new DiscardingSink()).uid("no-orders");
        numbers.keyBy(new ByNumber(), Types.STRING).process(new Baskets(), Types.LONG).uid("baskets")
            .sinkTo(new DiscardingSink()).uid("no-baskets");
        JobClient client = job.executeAsync("written");
        while (KEPT.get() < 2 * keys) {
            Thread.sleep(20);
        }
        String canonical = (String) client.triggerSavepoint(folder, SavepointFormatType.CANONICAL).get();
        String own = (String) client.triggerSavepoint(folder, SavepointFormatType.NATIVE).get();
        File checkpoints = new File(new URI(folder).getPath(), client.getJobID().toString());
        long complete = newest(checkpoints) + 1;
        while (newest(checkpoints) <= complete) {
            Thread.sleep(20);
        }
        client.cancel().get();
        return new String[] {canonical, own, new File(checkpoints, "chk-" + newest(checkpoints)).getPath()};
    }
}
