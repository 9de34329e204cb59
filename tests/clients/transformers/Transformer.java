import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** As transformer.py with the step "again": name, address, source, target. */
public class Transformer {
    private static final String STRINGS = "org.apache.kafka.common.serialization.String";

    public static void main(String[] arguments) throws Exception {
        var name = arguments[0];
        var source = arguments[2];
        var written = new ProducerRecord<String, String>(arguments[3], 0, null, name);
        var consumed = Map.<String, Object>of(
            "bootstrap.servers", arguments[1],
            "group.id", "transformers of " + source,
            "isolation.level", "read_committed",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "key.deserializer", STRINGS + "Deserializer",
            "value.deserializer", STRINGS + "Deserializer");
        var produced = Map.<String, Object>of(
            "bootstrap.servers", arguments[1],
            "transactional.id", name,
            "key.serializer", STRINGS + "Serializer",
            "value.serializer", STRINGS + "Serializer");
        try (var consumer = new KafkaConsumer<String, String>(consumed); var producer = new KafkaProducer<String, String>(produced)) {
            producer.initTransactions();
            consumer.subscribe(java.util.List.of(source));
            var record = first(consumer);
            producer.beginTransaction();
            producer.send(written).get();
            System.out.println("waits");
            System.in.read();
            producer.send(written).get();
            var next = Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(record.offset() + 1));
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            producer.commitTransaction();
            System.out.println("committed");
        }
    }

    private static ConsumerRecord<String, String> first(KafkaConsumer<String, String> consumer) {
        while (true) {
            for (var record : consumer.poll(Duration.ofSeconds(1))) {
                return record;
            }
        }
    }
}
