import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Carries out the steps on standard input with Kafka's quota managers. The lines are described in core.py. */
public class Quotas {
    private static class Clock implements Time {
        private long nowMs;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static final Clock CLOCK = new Clock();
    private static ClientQuotaManager manager;
    private static Metrics metrics;

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            CLOCK.nowMs = Long.parseLong(fields[1]);
            switch (fields[0]) {
                case "new" -> begin(fields);
                case "quota" -> manager.updateQuota(entity(fields[2], true), entity(fields[3], false), quota(fields[4]));
                case "back" -> manager.unrecordQuotaSensor(session(fields[2]), fields[3], Double.parseDouble(fields[4]), CLOCK.nowMs);
                case "record" -> out.println(
                    manager.maybeRecordAndGetThrottleTimeMs(session(fields[2]), fields[3], Double.parseDouble(fields[4]), CLOCK.nowMs));
                case "most" -> out.println(manager.maxValueInQuotaWindow(session(fields[2]), fields[3]));
                default -> out.println(mutate(fields));
            }
        }
        out.flush();
        System.exit(0);
    }

    private static void begin(String[] fields) {
        if (manager != null) {
            manager.shutdown();
            metrics.close();
        }
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(Integer.parseInt(fields[3]), Integer.parseInt(fields[4]));
        metrics = new Metrics(CLOCK);
        manager = switch (fields[2]) {
            case "request" -> new ClientRequestQuotaManager(config, metrics, CLOCK, "", Optional.empty());
            case "mutation" -> new ControllerMutationQuotaManager(config, metrics, CLOCK, "", Optional.empty());
            default -> new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, CLOCK, "", Optional.empty());
        };
        manager.initiateShutdown();
    }

    private static Session session(String user) throws IOException {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress());
    }

    private static Optional<ConfigEntity> entity(String name, boolean isUser) {
        if (name.equals("-")) {
            return Optional.empty();
        }
        if (name.equals("default")) {
            return Optional.of(isUser ? ClientQuotaManager.DEFAULT_USER_ENTITY : ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        return Optional.of(isUser ? new ClientQuotaManager.UserEntity(name) : new ClientQuotaManager.ClientIdEntity(name));
    }

    private static Optional<Quota> quota(String value) {
        return value.equals("-") ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(value)));
    }

    private static String mutate(String[] fields) throws IOException {
        ControllerMutationQuotaManager mutations = (ControllerMutationQuotaManager) manager;
        ControllerMutationQuota quota = fields[0].equals("strict")
            ? mutations.newStrictQuotaFor(session(fields[2]), fields[3])
            : mutations.newPermissiveQuotaFor(session(fields[2]), fields[3]);
        boolean isRefused = false;
        try {
            quota.record(Double.parseDouble(fields[4]));
        } catch (ThrottlingQuotaExceededException refused) {
            isRefused = true;
        }
        return quota.throttleTime() + (isRefused ? " refused" : "");
    }
}
