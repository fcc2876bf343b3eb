package shop;

import java.io.IOException;

import javax.ejb.EJB;
import javax.servlet.annotation.WebServlet;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** The shop over HTTP. */
@WebServlet("/*")
public class Front extends HttpServlet {
    private static final int AT_ONCE = 500;

    @EJB
    private Shop shop;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        int number = number(request, "number");
        String answer;
        switch (request.getPathInfo()) {
            case "/fill":
                answer = fill(number);
                break;
            case "/order":
                answer = String.valueOf(shop.order(number, number(request, "seed")));
                break;
            case "/history":
                answer = String.valueOf(shop.history(number));
                break;
            case "/browse":
                answer = shop.browse(number % Shop.CATEGORIES);
                break;
            default:
                response.sendError(HttpServletResponse.SC_NOT_FOUND);
                return;
        }
        response.setContentType("text/plain");
        response.getWriter().print(answer);
    }

    private String fill(int customers) {
        shop.addItems();
        for (int from = 0; from < customers; from += AT_ONCE) {
            shop.addCustomers(from, Math.min(from + AT_ONCE, customers));
        }
        return "filled";
    }

    private static int number(HttpServletRequest request, String name) {
        return Integer.parseInt(request.getParameter(name));
    }
}
