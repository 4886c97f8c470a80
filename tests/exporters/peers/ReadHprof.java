import java.io.File;
import java.util.Iterator;
import org.graalvm.visualvm.lib.jfluid.heap.*;

/** Prints what VisualVM reads from a heap dump: objects with sizes and references, roots, static fields. */
public class ReadHprof {
    public static void main(String[] arguments) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(arguments[0]));
        System.out.printf("summary\t%d\t%d\t%d%n", heap.getSummary().getTotalLiveInstances(),
            heap.getSummary().getTotalLiveBytes(), heap.getSummary().getTime());
        for (Iterator<Instance> all = heap.getAllInstancesIterator(); all.hasNext();) {
            Instance one = all.next();
            System.out.printf("object\t%d\t%s\t%d\t%d%n", one.getInstanceId(), one.getJavaClass().getName(),
                one.getSize(), one.getRetainedSize());
            if (one instanceof ObjectArrayInstance) {
                int at = 0;
                for (Instance target : ((ObjectArrayInstance) one).getValues()) {
                    if (target != null) {
                        System.out.printf("element\t%d\t%d\t%d%n", one.getInstanceId(), at, target.getInstanceId());
                    }
                    at++;
                }
                continue;
            }
            for (FieldValue value : one.getFieldValues()) {
                if (value instanceof ObjectFieldValue && ((ObjectFieldValue) value).getInstance() != null) {
                    System.out.printf("field\t%d\t%s\t%d%n", one.getInstanceId(), value.getField().getName(),
                        ((ObjectFieldValue) value).getInstance().getInstanceId());
                }
            }
        }
        for (GCRoot root : heap.getGCRoots()) {
            Instance of = root.getInstance();
            System.out.printf("root\t%s\t%d%n", root.getKind(), of == null ? 0 : of.getInstanceId());
        }
        for (Object one : heap.getAllClasses()) {
            JavaClass of = (JavaClass) one;
            for (Object value : of.getStaticFieldValues()) {
                if (value instanceof ObjectFieldValue && ((ObjectFieldValue) value).getInstance() != null) {
                    System.out.printf("static\t%s\t%s\t%d%n", of.getName(), ((FieldValue) value).getField().getName(),
                        ((ObjectFieldValue) value).getInstance().getInstanceId());
                }
            }
        }
    }
}
