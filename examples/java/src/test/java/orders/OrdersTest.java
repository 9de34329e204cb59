package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import odradek.control.model.PostClockAdvanceRequest;
import odradek.control.model.PostTopicsRequest;
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
        broker.control.postTopics(new PostTopicsRequest().name("orders"));
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
        var rule = Map.of("api", "Produce", "error", "NOT_ENOUGH_REPLICAS", "times", 2);
        String fault = broker.control.postFaults(rule).getFault();

        produce("an order");

        assertEquals(2L, broker.control.getFaultsFault(fault).getHits());
        assertEquals(1, broker.control.getTopicsTopicRecords("orders", null).getRecords().size());
    }

    /** A time jump: eight days later retention has taken the old order. */
    @Test
    void anOrderIsForgottenAfterAWeek() throws Exception {
        produce("old");
        broker.control.postClockAdvance(new PostClockAdvanceRequest().days(BigDecimal.valueOf(8)));
        produce("new");

        Map<String, Object> configs = Map.of("bootstrap.servers", broker.address);
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            var orders = new TopicPartition("orders", 0);
            assertEquals(Map.of(orders, 1L), consumer.beginningOffsets(List.of(orders)));
            assertEquals(Map.of(orders, 2L), consumer.endOffsets(List.of(orders)));
        }
    }
}
