package shop;

import javax.persistence.Entity;
import javax.persistence.Id;

/** A customer, with what the orders came to. */
@Entity
public class Customer {
    @Id
    private int id;
    private String name;
    private String address;
    private long spent;

    protected Customer() {
    }

    Customer(int id) {
        this.id = id;
        name = "Customer " + id;
        address = id + " Long Street, in a town of some thousand people";
    }

    void spend(long cents) {
        spent += cents;
    }

    long spent() {
        return spent;
    }
}
