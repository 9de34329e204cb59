import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;

/** A member of the consumer protocol: address, group, pattern, instance id. It tells what it reads, and ends with its input. */
public class Member {
    public static void main(String[] arguments) throws Exception {
        var config = Map.<String, Object>of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "group.instance.id", arguments[3],
            "group.protocol", "consumer",
            "auto.offset.reset", "earliest",
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (var consumer = new KafkaConsumer<String, String>(config)) {
            consumer.subscribe(new SubscriptionPattern(arguments[2]));
            var before = -1;
            // Nothing is written to it: what can be read is its end.
            while (!isAtItsEnd()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    System.out.println("read " + record.value());
                }
                if (consumer.assignment().size() != before) {
                    before = consumer.assignment().size();
                    System.out.println("has " + before);
                }
            }
        }
    }

    private static boolean isAtItsEnd() throws Exception {
        return System.in.available() > 0;
    }
}
