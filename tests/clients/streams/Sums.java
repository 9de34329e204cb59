import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Sums orders (user:amount) by the users' cities: a table, a repartitioned join and an aggregate, under exactly-once.
 *
 * Arguments: bootstrap servers, the names' prefix, the directory of the state, then settings as name=value. It prints its states,
 * and ends with its standard input.
 */
public class Sums {
    public static void main(String[] arguments) throws Exception {
        String prefix = arguments[1];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", prefix);
        settings.put("state.dir", arguments[2]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        for (int place = 3; place < arguments.length; place++) {
            String[] setting = arguments[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> users = builder.table(prefix + "-users", Materialized.as("cities"));
        builder.<String, String>stream(prefix + "-orders")
            .selectKey((key, order) -> order.split(":")[0])
            .mapValues(order -> order.split(":")[1])
            .join(users, (amount, city) -> city + ":" + amount)
            .selectKey((key, paid) -> paid.split(":")[0])
            .mapValues(paid -> paid.split(":")[1])
            .groupByKey()
            .aggregate(() -> "0", (city, amount, sum) -> Long.toString(Long.parseLong(sum) + Long.parseLong(amount)),
                Materialized.as("sums"))
            .toStream()
            .to(prefix + "-sums");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close(Duration.ofSeconds(20));
    }
}
