package shop;

import javax.persistence.Entity;
import javax.persistence.FetchType;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.ManyToOne;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;

/** So many of an item in an order. */
@Entity
@Table(name = "purchase_line")
public class Line {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "lines")
    @SequenceGenerator(name = "lines", allocationSize = 500)
    private long id;
    @ManyToOne(fetch = FetchType.LAZY)
    private Purchase purchase;
    @ManyToOne(fetch = FetchType.LAZY)
    private Item item;
    private int quantity;
    private long cents;
    private String text;

    protected Line() {
    }

    Line(Purchase purchase, Item item, int quantity) {
        this.purchase = purchase;
        this.item = item;
        this.quantity = quantity;
        cents = quantity * item.cents();
        text = quantity + " of " + item.title();
    }

    long cents() {
        return cents;
    }
}
