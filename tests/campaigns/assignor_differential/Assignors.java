import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.StringJoiner;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Answers each line of standard input, a group, with a line of Kafka's assignment. The lines are described in kafkas.py.
 *
 * A group that is "sorted" keeps the order of the line; one that is "hashed" is in hash tables, as a broker has it.
 */
public class Assignors {
    private static final Map<String, ConsumerGroupPartitionAssignor> ASSIGNORS =
        Map.of("range", new RangeAssignor(), "uniform", new UniformAssignor());

    private record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line));
        }
        out.flush();
    }

    private static String answer(String line) {
        String[] fields = line.split(" ");
        boolean hashed = fields[1].equals("hashed");
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : split(fields[3], ",")) {
            String[] parts = topic.split(":");
            counts.put(Uuid.fromString(parts[0]), Integer.valueOf(parts[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = hashed ? new HashMap<>() : new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (String text : split(fields[4], ",")) {
            String[] parts = text.split(":", -1);
            String memberId = decode(parts[0]);
            Map<Uuid, Set<Integer>> partitions = partitions(parts[3], hashed);
            partitions.forEach((topicId, indexes) -> indexes.forEach(
                index -> owners.computeIfAbsent(topicId, each -> new HashMap<>()).put(index, memberId)));
            Set<Uuid> subscribed = hashed ? new HashSet<>() : new LinkedHashSet<>();
            for (String topicId : split(parts[2], "\\.")) {
                subscribed.add(Uuid.fromString(topicId));
            }
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                parts[1].isEmpty() ? Optional.empty() : Optional.of(decode(parts[1])),
                subscribed,
                new Assignment(Collections.unmodifiableMap(partitions))));
        }
        try {
            return print(ASSIGNORS.get(fields[0]).assign(
                new GroupSpecImpl(Collections.unmodifiableMap(members), SubscriptionType.valueOf(fields[2]), owners),
                new Topics(counts)).members());
        } catch (RuntimeException failure) {
            return "! " + failure;
        }
    }

    private static Map<Uuid, Set<Integer>> partitions(String text, boolean hashed) {
        Map<Uuid, Set<Integer>> partitions = hashed ? new HashMap<>() : new LinkedHashMap<>();
        for (String topic : split(text, "\\.")) {
            String[] parts = topic.split("=");
            Set<Integer> indexes = hashed ? new HashSet<>() : new LinkedHashSet<>();
            for (String index : parts[1].split("\\+")) {
                indexes.add(Integer.valueOf(index));
            }
            partitions.put(Uuid.fromString(parts[0]), indexes);
        }
        return partitions;
    }

    private static String print(Map<String, MemberAssignment> assignments) {
        StringJoiner members = new StringJoiner(",");
        assignments.forEach((memberId, assignment) -> {
            StringJoiner topics = new StringJoiner(".");
            assignment.partitions().forEach((topicId, indexes) -> topics.add(topicId + "=" + join(indexes)));
            members.add(Base64.getUrlEncoder().encodeToString(memberId.getBytes(StandardCharsets.UTF_8)) + ":" + topics);
        });
        return members.toString();
    }

    private static String join(Collection<Integer> indexes) {
        StringJoiner joined = new StringJoiner("+");
        indexes.forEach(index -> joined.add(index.toString()));
        return joined.toString();
    }

    private static String decode(String text) {
        return new String(Base64.getUrlDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String[] split(String text, String by) {
        return text.equals("-") || text.isEmpty() ? new String[0] : text.split(by);
    }
}
