package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private Broker broker;

    @BeforeEach
    void start() throws Exception {
        broker = new Broker();
        broker.ask("POST", "/topics", "{\"name\": \"orders\"}");
    }

    @AfterEach
    void stop() throws Exception {
        broker.close();
    }

    private void produce(String value) throws Exception {
        Map<String, Object> configs = Map.of("bootstrap.servers", broker.address);
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", value)).get();
        }
    }

    /** A fault: the broker lacks replicas twice, and the client tries again. */
    @Test
    void anOrderArrivesThoughReplicasAreMissing() throws Exception {
        broker.ask("POST", "/faults", "{\"api\": \"Produce\", \"error\": \"NOT_ENOUGH_REPLICAS\", \"times\": 2}");

        produce("an order");

        String faults = broker.ask("GET", "/faults", "");
        assertTrue(faults.contains("\"hits\": 2"), faults);
        String records = broker.ask("GET", "/topics/orders/records", "");
        assertTrue(records.contains("\"value\": \"an order\""), records);
    }

    /** A time jump: eight days later retention has taken the old order. */
    @Test
    void anOrderIsForgottenAfterAWeek() throws Exception {
        produce("old");
        broker.ask("POST", "/clock/advance", "{\"days\": 8}");
        produce("new");

        Map<String, Object> configs = Map.of("bootstrap.servers", broker.address);
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            var orders = new TopicPartition("orders", 0);
            assertEquals(Map.of(orders, 1L), consumer.beginningOffsets(List.of(orders)));
            assertEquals(Map.of(orders, 2L), consumer.endOffsets(List.of(orders)));
        }
    }
}
