import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** What a program in Java does with a server: each part prints one line of JSON, [name, rows or error]. */
public class Matrix {
    static String url, user, password;

    public static void main(String[] arguments) throws Exception {
        url = arguments[0];
        user = arguments[1];
        password = arguments[2];
        String only = arguments.length > 3 ? arguments[3] : "all";
        if (!only.equals("metadata")) {
            statements();
            connections();
        }
        if (!only.equals("statements")) metadata();
    }

    static Connection connect(String... options) throws SQLException {
        Properties given = new Properties();
        given.setProperty("user", user);
        given.setProperty("password", password);
        for (int i = 0; i < options.length; i += 2) given.setProperty(options[i], options[i + 1]);
        return DriverManager.getConnection(url, given);
    }

    static void statements() throws Exception {
        try (Connection c = connect("prepareThreshold", "1", "ApplicationName", "matrix")) {
            part("version", () -> List.of(List.of(c.getMetaData().getDatabaseProductName(),
                c.getMetaData().getDatabaseProductVersion(), c.isValid(5), c.getCatalog(), c.getSchema())));
            part("select", () -> rows(c.createStatement().executeQuery("SELECT 1, 'x', NULL, true, 1.50, 2.5::float8")));
            part("application_name", () -> rows(c.createStatement().executeQuery("SHOW application_name")));
            part("wards", () -> typed(c.createStatement().executeQuery("SELECT * FROM wards ORDER BY ward")));
            for (int i = 0; i < 3; i++) {  // from the second on the driver asks for binary values
                PreparedStatement s = c.prepareStatement("SELECT * FROM wards WHERE ward <> ? ORDER BY ward");
                s.setString(1, "none");
                part("wards prepared " + i, () -> { s.executeQuery().close(); return typed(s.executeQuery()); });
            }
            part("parameters", () -> {
                PreparedStatement s = c.prepareStatement("SELECT ward FROM wards WHERE floor = ? AND beds = ?"
                    + " AND number = ? AND rating = ? AND share = ? AND fee = ? AND opened = ? AND inspected = ?"
                    + " AND changed = ? AND rounds = ? AND code = ? AND open = ?");
                s.setShort(1, (short) 1);
                s.setInt(2, 20);
                s.setLong(3, 9007199254740993L);
                s.setFloat(4, 1.5f);
                s.setDouble(5, 0.1);
                s.setBigDecimal(6, new BigDecimal("1234.500"));
                s.setObject(7, java.time.LocalDate.of(1999, 12, 31));
                s.setObject(8, java.time.LocalDateTime.of(2001, 2, 3, 4, 5, 6, 789000000));
                s.setObject(9, java.time.OffsetDateTime.parse("2024-06-01T12:00:00Z"));
                s.setObject(10, java.time.LocalTime.of(7, 30));
                s.setObject(11, UUID.fromString("0d1f7d1c-5c6b-4f0e-9a53-6d1f4a1c2b3d"));
                s.setBoolean(12, true);
                List<List<Object>> found = new ArrayList<>();
                for (int i = 0; i < 7; i++) found.addAll(rows(s.executeQuery()));
                return found;
            });
            part("odd text", () -> {
                PreparedStatement s = c.prepareStatement("SELECT ward FROM wards WHERE ward = ?");
                s.setString(1, "O'Brien \"ä€😀\" \\ ward");
                return rows(s.executeQuery());
            });
            part("null", () -> {
                PreparedStatement s = c.prepareStatement("SELECT count(*) FROM wards WHERE ward = ?");
                s.setNull(1, Types.VARCHAR);
                return rows(s.executeQuery());
            });
            part("described", () -> {
                PreparedStatement s = c.prepareStatement("SELECT ward, sum(cost), count(*) FROM visits WHERE nights > ? AND at < ? GROUP BY ward");
                ParameterMetaData in = s.getParameterMetaData();
                ResultSetMetaData out = s.getMetaData();
                List<List<Object>> told = new ArrayList<>();
                for (int i = 1; i <= in.getParameterCount(); i++) told.add(List.of("$" + i, in.getParameterTypeName(i)));
                for (int i = 1; i <= out.getColumnCount(); i++)
                    told.add(List.of(out.getColumnLabel(i), out.getColumnTypeName(i), out.getColumnClassName(i)));
                return told;
            });
            part("counts", () -> {
                PreparedStatement s = c.prepareStatement("SELECT ward, count(*) FROM visits WHERE nights >= ? GROUP BY ward ORDER BY ward");
                s.setInt(1, 0);
                List<List<Object>> found = new ArrayList<>();
                for (int i = 0; i < 3; i++) found.addAll(rows(s.executeQuery()));
                return found;
            });
            part("error", () -> rows(c.createStatement().executeQuery("SELECT count(*) FROM visits\nWHERE nothing = 1")));
            part("after an error", () -> rows(c.createStatement().executeQuery("SELECT 1")));
            part("several", () -> {
                Statement s = c.createStatement();
                List<List<Object>> told = new ArrayList<>();
                boolean more = s.execute("SELECT 1; SET application_name = 'other'; SELECT 2");
                while (more || s.getUpdateCount() != -1) {
                    told.add(more ? rows(s.getResultSet()).get(0) : List.of("update " + s.getUpdateCount()));
                    more = s.getMoreResults();
                }
                return told;
            });
            part("large", () -> {
                ResultSet all = c.createStatement().executeQuery("SELECT i FROM generate_series(1, 100000) AS s(i)");
                long sum = 0, count = 0;
                while (all.next()) { sum += all.getLong(1); count++; }
                return List.of(List.of(count, sum));
            });
            part("copy", () -> {
                StringWriter out = new StringWriter();
                new CopyManager(c.unwrap(org.postgresql.core.BaseConnection.class))
                    .copyOut("COPY (SELECT ward, beds FROM wards ORDER BY ward) TO STDOUT WITH (FORMAT csv, HEADER)", out);
                return List.of(List.of(out.toString()));
            });
            part("batch of queries", () -> {
                c.setReadOnly(true);
                c.setAutoCommit(false);
                Statement s = c.createStatement();
                s.setFetchSize(1000);
                ResultSet all = s.executeQuery("SELECT i FROM generate_series(1, 25000) AS s(i)");
                long count = 0;
                while (all.next()) count++;
                c.commit();
                c.setAutoCommit(true);
                c.setReadOnly(false);
                return List.of(List.of(count));
            });
            part("failed transaction", () -> {
                c.setAutoCommit(false);
                List<List<Object>> told = new ArrayList<>();
                told.add(List.of(state(() -> c.createStatement().executeQuery("SELECT nothing FROM wards"))));
                told.add(List.of(state(() -> c.createStatement().executeQuery("SELECT 1"))));
                c.rollback();
                told.add(rows(c.createStatement().executeQuery("SELECT 1")).get(0));
                c.commit();
                c.setAutoCommit(true);
                return told;
            });
            part("isolation", () -> {
                c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                int level = c.getTransactionIsolation();
                c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
                return List.of(List.of(level, c.getTransactionIsolation()));
            });
            part("savepoint", () -> {
                c.setAutoCommit(false);
                Savepoint here = c.setSavepoint("here");
                String told = state(() -> c.createStatement().executeQuery("SELECT nothing FROM wards"));
                c.rollback(here);
                List<List<Object>> after = rows(c.createStatement().executeQuery("SELECT 2"));
                c.commit();
                c.setAutoCommit(true);
                return List.of(List.of(told), after.get(0));
            });
        }
    }

    static final String SLOW = "SELECT count(*) FROM generate_series(1, 100000) AS a(i), generate_series(1, 1000000) AS b(j) WHERE (i * j) % 7 = 3";

    static void connections() throws Exception {
        part("wrong password", () -> {
            try (Connection c = connect("password", "wrong")) { return List.of(); }
        });
        part("unknown database", () -> {
            int end = url.indexOf('?') < 0 ? url.length() : url.indexOf('?');
            String other = url.substring(0, url.lastIndexOf('/', end)) + "/nothing" + url.substring(end);
            return List.of(List.of(DriverManager.getConnection(other, user, password).getCatalog()));
        });
        part("options", () -> {
            try (Connection c = connect("options", "-c statement_timeout=4321")) {
                return rows(c.createStatement().executeQuery("SHOW statement_timeout"));
            }
        });
        part("simple protocol", () -> {
            try (Connection c = connect("preferQueryMode", "simple")) {
                PreparedStatement s = c.prepareStatement("SELECT ward, beds FROM wards WHERE beds = ? AND ward = ?");
                s.setInt(1, 20);
                s.setString(2, "cardiology");
                return rows(s.executeQuery());
            }
        });
        part("query timeout", () -> {
            try (Connection c = connect()) {
                Statement s = c.createStatement();
                s.setQueryTimeout(1);
                return rows(s.executeQuery(SLOW));
            }
        });
        part("cancel", () -> {
            try (Connection c = connect()) {
                Statement s = c.createStatement();
                Thread later = new Thread(() -> {
                    try { Thread.sleep(500); s.cancel(); } catch (Exception e) { throw new RuntimeException(e); }
                });
                later.start();
                String told = state(() -> s.executeQuery(SLOW));
                later.join();
                return List.of(List.of(told), rows(c.createStatement().executeQuery("SELECT 1")).get(0));
            }
        });
        part("notices", () -> {
            try (Connection c = connect()) {
                Statement s = c.createStatement();
                s.executeQuery("SELECT count(*) FROM patients WHERE insured").close();
                List<List<Object>> told = new ArrayList<>();
                for (SQLWarning one = s.getWarnings(); one != null; one = one.getNextWarning())
                    told.add(List.of(one.getSQLState(), one.getMessage()));
                return told;
            }
        });
    }

    static void metadata() throws Exception {
        try (Connection c = connect()) {
            DatabaseMetaData m = c.getMetaData();
            part("getTables", () -> rows(m.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), 2, 3, 4));
            part("getTables any", () -> rows(m.getTables(null, null, "visits", null), 2, 3, 4));
            part("getTables system", () -> List.of(List.of(rows(m.getTables(null, "pg_catalog", "pg_cl%", new String[] {"SYSTEM TABLE"}), 3))));
            part("getColumns", () -> rows(m.getColumns(null, "public", "wards", "%"), 3, 4, 5, 6, 7, 9, 10, 11, 17));
            part("getColumns all", () -> rows(m.getColumns(null, "public", "%", "%"), 3, 4, 6));
            part("comments", () -> List.of(List.of(rows(m.getTables(null, "public", "patients", null), 5), rows(m.getColumns(null, "public", "patients", "weight"), 12))));
            part("getPrimaryKeys", () -> rows(m.getPrimaryKeys(null, "public", "patients"), 2, 3, 4, 5));
            part("getImportedKeys", () -> rows(m.getImportedKeys(null, "public", "visits"), 3, 4, 7, 8, 9));
            part("getExportedKeys", () -> rows(m.getExportedKeys(null, "public", "patients"), 3, 4, 7, 8, 9));
            part("getCrossReference", () -> rows(m.getCrossReference(null, "public", "patients", null, "public", "visits"), 3, 4, 7, 8));
            part("getIndexInfo", () -> rows(m.getIndexInfo(null, "public", "visits", true, true), 3, 4, 8, 9));
            part("getBestRowIdentifier", () -> rows(m.getBestRowIdentifier(null, "public", "patients", 0, true), 2, 4));
            part("getSchemas", () -> rows(m.getSchemas(), 1));
            part("getCatalogs", () -> rows(m.getCatalogs(), 1));
            part("getTableTypes", () -> rows(m.getTableTypes(), 1));
            part("getTypeInfo", () -> rows(m.getTypeInfo(), 1, 2));
            part("getFunctions", () -> rows(m.getFunctions(null, "public", "%"), 3));
            part("getFunctions count", () -> rows(m.getFunctions(null, null, "count"), 3));
            part("getProcedures", () -> rows(m.getProcedures(null, "public", "%"), 3));
            part("getUDTs", () -> rows(m.getUDTs(null, null, "%", null), 3));
            part("getTablePrivileges", () -> rows(m.getTablePrivileges(null, "public", "visits"), 3, 6));
            part("getColumnPrivileges", () -> rows(m.getColumnPrivileges(null, "public", "visits", "ward"), 3, 4));
            part("getMaxColumnNameLength", () -> List.of(List.of(m.getMaxColumnNameLength(), m.getMaxColumnsInIndex())));
            part("getSQLKeywords", () -> List.of(List.of(m.getSQLKeywords().contains("ilike"))));
            part("getClientInfoProperties", () -> rows(m.getClientInfoProperties(), 1));
            part("getStringFunctions", () -> List.of(List.of(m.getStringFunctions().contains("concat"))));
            part("base column", () -> {
                ResultSetMetaData out = c.createStatement().executeQuery("SELECT ward, beds AS b FROM wards").getMetaData();
                return List.of(List.of(out.isAutoIncrement(1), out.isNullable(1) >= 0, out.getColumnName(2)));
            });
            part("array", () -> rows(c.createStatement().executeQuery("SELECT ARRAY[1, 2, 3], ARRAY['a', NULL, 'c d']")));
            part("setSchema", () -> { c.setSchema("public"); return List.of(List.of(c.getSchema())); });
        }
    }

    interface Act { void run() throws Exception; }

    static String state(Act act) {
        try { act.run(); return "no error"; } catch (SQLException e) { return e.getSQLState(); } catch (Exception e) { return e.toString(); }
    }

    static List<List<Object>> rows(ResultSet found, int... columns) throws SQLException {
        List<List<Object>> all = new ArrayList<>();
        int width = found.getMetaData().getColumnCount();
        while (found.next()) {
            List<Object> row = new ArrayList<>();
            if (columns.length == 0) for (int i = 1; i <= width; i++) row.add(found.getObject(i));
            for (int i : columns) row.add(found.getObject(i));
            all.add(row);
        }
        found.close();
        return all;
    }

    /** The values as Java has them, with their classes, and as text. */
    static List<List<Object>> typed(ResultSet found) throws SQLException {
        List<List<Object>> all = new ArrayList<>();
        int width = found.getMetaData().getColumnCount();
        while (found.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= width; i++) {
                Object value = found.getObject(i);
                row.add((value == null ? "null" : value.getClass().getSimpleName()) + " " + value + " " + found.getString(i));
            }
            all.add(row);
        }
        found.close();
        return all;
    }

    static void part(String name, Callable<List<? extends List<?>>> ask) {
        StringBuilder line = new StringBuilder("[").append(quoted(name)).append(", ");
        try {
            json(line, ask.call());
        } catch (PSQLException e) {
            ServerErrorMessage told = e.getServerErrorMessage();
            if (told == null) {
                line.append("{\"state\": ").append(quoted(e.getSQLState())).append(", \"client\": ").append(quoted(e.getMessage())).append("}");
            } else {
                line.append("{\"state\": ").append(quoted(told.getSQLState())).append(", \"message\": ").append(quoted(told.getMessage()))
                    .append(", \"detail\": ").append(quoted(told.getDetail())).append(", \"hint\": ").append(quoted(told.getHint()))
                    .append(", \"position\": ").append(told.getPosition()).append("}");
            }
        } catch (Throwable e) {
            line.append("{\"thrown\": ").append(quoted(e.toString())).append("}");
        }
        System.out.println(line.append("]"));
    }

    static void json(StringBuilder out, Object value) throws SQLException {
        if (value instanceof List) {
            out.append("[");
            String between = "";
            for (Object one : (List<?>) value) {
                out.append(between);
                json(out, one);
                between = ", ";
            }
            out.append("]");
        } else if (value instanceof Array) {
            json(out, java.util.Arrays.toString((Object[]) ((Array) value).getArray()));
        } else if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long || value instanceof Short) {
            out.append(value);
        } else {
            out.append(quoted(value.toString()));
        }
    }

    static String quoted(String text) {
        if (text == null) return "null";
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c == '"' || c == '\\' || c < ' ' || c > '~' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append("\"").toString();
    }
}
