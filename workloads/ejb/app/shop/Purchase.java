package shop;

import java.util.ArrayList;
import java.util.List;

import javax.persistence.CascadeType;
import javax.persistence.Entity;
import javax.persistence.FetchType;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.ManyToOne;
import javax.persistence.OneToMany;
import javax.persistence.SequenceGenerator;

/** An order of a customer. */
@Entity
public class Purchase {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "purchases")
    @SequenceGenerator(name = "purchases", allocationSize = 100)
    private long id;
    @ManyToOne(fetch = FetchType.LAZY)
    private Customer customer;
    @OneToMany(mappedBy = "purchase", cascade = CascadeType.ALL, orphanRemoval = true)
    private List<Line> lines = new ArrayList<>();

    protected Purchase() {
    }

    Purchase(Customer customer) {
        this.customer = customer;
    }

    void add(Item item, int quantity) {
        lines.add(new Line(this, item, quantity));
    }

    long cents() {
        return lines.stream().mapToLong(Line::cents).sum();
    }
}
