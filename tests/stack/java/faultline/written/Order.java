package faultline.written;

/** A POJO: Flink's description of it in a checkpoint has its fields. */
public class Order {
    public long number;
    public String name;
    public Double total;

    public Order() {
    }
}
