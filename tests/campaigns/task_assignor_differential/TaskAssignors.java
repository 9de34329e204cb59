import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.StringJoiner;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Answers each line of standard input, a streams group, with a line of Kafka's assignment. The lines are described in kafkas.py.
 *
 * The members of a group that is "sorted" keep the order of the line; those of one that is "hashed" are in a hash table.
 */
public class TaskAssignors {
    private record Topology(List<String> subtopologies, Map<String, Integer> counts, Set<String> stateful)
        implements TopologyDescriber {
        @Override
        public int maxNumInputPartitions(String subtopologyId) {
            return counts.get(subtopologyId);
        }

        @Override
        public boolean isStateful(String subtopologyId) {
            return stateful.contains(subtopologyId);
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
        Topology topology = new Topology(new ArrayList<>(), new HashMap<>(), new HashSet<>());
        for (String text : split(fields[2], ",")) {
            String[] parts = text.split(":");
            String subtopologyId = decode(parts[0]);
            topology.subtopologies().add(subtopologyId);
            topology.counts().put(subtopologyId, Integer.valueOf(parts[1]));
            if (parts[2].equals("stateful")) {
                topology.stateful().add(subtopologyId);
            }
        }
        Map<String, MemberMetadataAndStateImpl> members = fields[0].equals("hashed") ? new HashMap<>() : new LinkedHashMap<>();
        for (String text : split(fields[3], ",")) {
            String[] parts = text.split(":", -1);
            members.put(decode(parts[0]), new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), decode(parts[1]), Map.of(),
                tasks(parts[2]), tasks(parts[3]), Map.of(), offsets(parts[4]), Map.of()));
        }
        try {
            return print(new StickyTaskAssignor().assign(
                new GroupSpecImpl(members, new AssignmentConfigsImpl(Integer.parseInt(fields[1]), List.of())),
                topology).members());
        } catch (RuntimeException failure) {
            return "! " + failure;
        }
    }

    private static Map<String, Set<Integer>> tasks(String text) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        for (String subtopology : split(text, "\\.")) {
            String[] parts = subtopology.split("=");
            Set<Integer> partitions = new HashSet<>();
            for (String partition : parts[1].split("\\+")) {
                partitions.add(Integer.valueOf(partition));
            }
            tasks.put(decode(parts[0]), partitions);
        }
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> offsets(String text) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        for (String subtopology : split(text, "\\.")) {
            String[] parts = subtopology.split("=");
            Map<Integer, Long> ofPartitions = new HashMap<>();
            for (String partition : parts[1].split("\\+")) {
                String[] pair = partition.split("@");
                ofPartitions.put(Integer.valueOf(pair[0]), Long.valueOf(pair[1]));
            }
            offsets.put(decode(parts[0]), ofPartitions);
        }
        return offsets;
    }

    private static String print(Map<String, MemberAssignment> assignments) {
        StringJoiner members = new StringJoiner(",");
        assignments.forEach((memberId, assignment) -> members.add(
            encode(memberId) + ":" + print(assignment.activeTasks().entrySet()) + ":" + print(assignment.standbyTasks().entrySet())));
        return members.toString();
    }

    private static String print(Set<Map.Entry<String, Set<Integer>>> tasks) {
        StringJoiner subtopologies = new StringJoiner(".");
        for (Map.Entry<String, Set<Integer>> subtopology : tasks) {
            StringJoiner partitions = new StringJoiner("+");
            subtopology.getValue().forEach(partition -> partitions.add(partition.toString()));
            subtopologies.add(encode(subtopology.getKey()) + "=" + partitions);
        }
        return subtopologies.toString();
    }

    private static String encode(String text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String decode(String text) {
        return new String(Base64.getUrlDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String[] split(String text, String by) {
        return text.equals("-") || text.isEmpty() ? new String[0] : text.split(by);
    }
}
