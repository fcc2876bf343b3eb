package shop;

import javax.persistence.Entity;
import javax.persistence.Id;
import javax.persistence.Index;
import javax.persistence.Table;

/** Something that is sold. */
@Entity
@Table(indexes = @Index(columnList = "category"))
public class Item {
    @Id
    private int id;
    private int category;
    private String title;
    private long cents;

    protected Item() {
    }

    Item(int id, int categories) {
        this.id = id;
        category = id % categories;
        title = "Item " + id + " of category " + category;
        cents = 100 + id % 900;
    }

    int id() {
        return id;
    }

    String title() {
        return title;
    }

    long cents() {
        return cents;
    }
}
