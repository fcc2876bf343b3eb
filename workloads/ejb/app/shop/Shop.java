package shop;

import java.util.List;
import java.util.Random;

import javax.ejb.Stateless;
import javax.persistence.EntityManager;
import javax.persistence.PersistenceContext;

/** What the shop does, each call in a transaction of its own. */
@Stateless
public class Shop {
    static final int ITEMS = 10_000, CATEGORIES = 200, KEPT = 6;

    @PersistenceContext
    private EntityManager data;

    public void addItems() {
        for (int id = 0; id < ITEMS; id++) {
            data.persist(new Item(id, CATEGORIES));
        }
    }

    /** Customers from one number up to another, with as many orders as are kept. */
    public void addCustomers(int from, int to) {
        Random random = new Random(from);
        for (int id = from; id < to; id++) {
            Customer customer = new Customer(id);
            data.persist(customer);
            for (int i = 0; i < KEPT; i++) {
                buy(customer, random);
            }
        }
    }

    /** A customer buys, and the oldest order beyond those that are kept is removed. */
    public long order(int customer, long seed) {
        Customer buyer = data.find(Customer.class, customer);
        buy(buyer, new Random(seed));
        List<Purchase> all = purchases(customer, "p");
        for (Purchase old : all.subList(0, Math.max(0, all.size() - KEPT))) {
            data.remove(old);
        }
        return buyer.spent();
    }

    private void buy(Customer customer, Random random) {
        Purchase purchase = new Purchase(customer);
        for (int i = 0; i < 5; i++) {
            purchase.add(data.find(Item.class, random.nextInt(ITEMS)), 1 + random.nextInt(9));
        }
        customer.spend(purchase.cents());
        data.persist(purchase);
    }

    /** The orders of a customer with all lines. */
    public long history(int customer) {
        return purchases(customer, "p join fetch p.lines").stream().mapToLong(Purchase::cents).sum();
    }

    private List<Purchase> purchases(int customer, String from) {
        String query = "select distinct p from Purchase " + from + " where p.customer.id = :customer order by p.id";
        return data.createQuery(query, Purchase.class).setParameter("customer", customer).getResultList();
    }

    /** All items of a category, as a page would show them. */
    public String browse(int category) {
        StringBuilder page = new StringBuilder();
        String query = "select i from Item i where i.category = :category order by i.cents, i.id";
        for (Item item : data.createQuery(query, Item.class).setParameter("category", category).getResultList()) {
            page.append(item.title()).append(' ').append(item.cents()).append('\n');
        }
        return page.toString();
    }
}
