package faultline.written;

/** No POJO, since its field has no setter: Kryo writes it, and a checkpoint has no more than its name. */
public class Basket {
    private final long things;

    public Basket(long things) {
        this.things = things;
    }
}
