import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;

/** As share_member.py: address, group, topic, and "hold" or "work". */
public class ShareMember {
    private static final String BYTES = "org.apache.kafka.common.serialization.StringDeserializer";
    private static final Map<String, String> words = new HashMap<>();
    private static volatile boolean ends = false;

    public static void main(String[] arguments) throws Exception {
        var holds = arguments[3].equals("hold");
        var config = Map.<String, Object>of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "share.acknowledgement.mode", "explicit",
            "reconnect.backoff.max.ms", "200",
            "key.deserializer", BYTES,
            "value.deserializer", BYTES);
        var reader = new Thread(ShareMember::waitForTheEnd);
        reader.setDaemon(true);
        reader.start();
        try (var consumer = new KafkaShareConsumer<String, String>(config)) {
            consumer.setAcknowledgementCommitCallback(ShareMember::committed);
            consumer.subscribe(List.of(arguments[2]));
            while (!ends) {
                var records = consumer.poll(Duration.ofMillis(200));
                for (var record : records) {
                    take(consumer, record, holds);
                }
                if (holds && !records.isEmpty()) {
                    System.out.println("holds");
                    Thread.sleep(Long.MAX_VALUE);
                }
                consumer.commitSync(Duration.ofSeconds(5));
            }
        }
    }

    private static void take(KafkaShareConsumer<String, String> consumer, ConsumerRecord<String, String> record, boolean holds) {
        var place = record.partition() + " " + record.offset();
        var count = record.deliveryCount().get();
        System.out.println("got " + place + " " + count);
        if (holds) {
            return;
        }
        var word = record.value();
        if (word.equals("release") && count > 1) {
            word = "accept";
        }
        words.put(place, word);
        consumer.acknowledge(record, AcknowledgeType.valueOf(word.toUpperCase()));
    }

    private static void committed(Map<TopicIdPartition, Set<Long>> offsets, Exception failure) {
        for (var entry : offsets.entrySet()) {
            for (var offset : entry.getValue()) {
                var place = entry.getKey().partition() + " " + offset;
                var reason = failure == null ? "" : failure.getClass().getSimpleName();
                System.out.println((failure == null ? "done " : "lost ") + place + " " + words.get(place) + " " + reason);
            }
        }
    }

    private static void waitForTheEnd() {
        try {
            System.in.read();
        } catch (java.io.IOException closed) {
            System.err.println(closed);
        }
        ends = true;
    }
}
