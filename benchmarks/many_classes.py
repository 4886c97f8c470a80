"""Writes a C# program of many classes as input for a compiler: `python many_classes.py DIR [FILES]`."""

import sys
from pathlib import Path

CLASSES_A_FILE = 4
METHODS_A_CLASS = 14


def method(file: int, number: int) -> str:
    """A method with constructs that need memory in a compiler: lambdas, generics, strings, overloads, conditions."""
    other = (file * 7 + number * 3) % (file + 1)
    return f"""
        public int Work{number}(List<Row{file}> rows, Dictionary<string, int> seen, int limit) {{
            int sum = {number};
            foreach (var row in rows.Where(r => r.Key > {number} && r.Name != null).OrderBy(r => r.Name + limit)) {{
                string name = row.Name + "/" + row.Key + "/" + limit;
                if (!seen.ContainsKey(name)) seen[name] = row.Key * {file % 31 + 1};
                else if (seen[name] > limit) sum += Shape{other}.Weigh(name, seen[name]) + (int) (row.Share * 100.0);
                for (int i = 0; i < limit; i++) sum ^= (i << {number % 7}) + (row.Key % (i + {number + 1}));
                switch (sum % 4) {{
                    case 0: sum += name.Length; break;
                    case 1: sum -= rows.Count; break;
                    default: sum = Math.Max(sum, seen.Count); break;
                }}
            }}
            return sum;
        }}
"""


def source(file: int) -> str:
    """The text of one source file."""
    classes = "".join(
        f"""
    public class Class{file}_{number} : ICounted {{
        readonly List<Row{file}> own = new List<Row{file}>();
        public int Count {{ get {{ return own.Count; }} }}
        public event Action<int> Changed = delegate {{ }};
{"".join(method(file, at) for at in range(METHODS_A_CLASS))}
        public int All(Dictionary<string, int> seen) {{
            int sum = 0;
            Func<int, int> twice = value => value * 2 + Count;
            for (int i = 0; i < 3; i++) sum += twice(Work0(own, seen, i));
            Changed(sum);
            return sum;
        }}
    }}
"""
        for number in range(CLASSES_A_FILE)
    )
    return f"""using System;
using System.Collections.Generic;
using System.Linq;

namespace Many {{
    public struct Row{file} {{ public int Key; public string Name; public double Share; }}
    public static class Shape{file} {{
        public static int Weigh(string name, int weight) {{ return name.GetHashCode() ^ weight; }}
        public static int Weigh(string name, double weight) {{ return (int) weight; }}
    }}
{classes}
}}
"""


def write(directory: Path, num_files: int) -> Path:
    """Writes the source files and a response file for the compiler (`@FILE`); returns the path of the response file."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "counted.cs").write_text("namespace Many { public interface ICounted { int Count { get; } } }\n")
    names = ["counted.cs"]
    for file in range(num_files):
        names.append(f"many{file}.cs")
        (directory / names[-1]).write_text(source(file))
    listed = directory / "sources"
    listed.write_text("".join(f"{name}\n" for name in names))
    return listed


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500)
