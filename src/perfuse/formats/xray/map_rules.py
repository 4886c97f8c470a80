"""What each rule about XRay instrumentation maps means, and what to do."""

from perfuse.diagnostics import Explanation

RULES: dict[str, Explanation] = {
    "XM001": Explanation(
        title="the map ends within an entry",
        meaning=(
            "The section xray_instr_map is not a whole number of entries (32 bytes, 16 where addresses have 32 bits). "
            "The complete entries were read."
        ),
        action="Build the program again; a linker script or a tool truncated the section.",
    ),
    "XM002": Explanation(
        title="the map is partly or wholly beyond the end of the file",
        meaning="The file is truncated: functions at the end of the map are missing, and their ids have no names.",
        action="Copy the program again.",
    ),
    "XM003": Explanation(
        title="an address in the map is not in the program's code",
        meaning=(
            "The address of a sled or of its function is not in a section with code. Its id remains, without a name."
        ),
        action="No action is needed if the program was modified after linking; otherwise report how it was built.",
    ),
    "XM004": Explanation(
        title="a sled is of an unknown kind",
        meaning=(
            "Kinds are 0 to 5: entry, exit, tail exit, entry with arguments, custom event, typed event. It was "
            "retained with its number."
        ),
        action="Check whether the compiler is newer than this version of perfuse.",
    ),
    "XM005": Explanation(
        title="an entry of the map is of an unknown version",
        meaning=(
            "Versions are 0, 1 (absolute addresses) and 2 (relative to their field). It was read as version 2, or as "
            "absolute where only that gives a code address."
        ),
        action="Check whether the compiler is newer than this version of perfuse.",
    ),
    "XM006": Explanation(
        title="an address of the map is unresolved",
        meaning="The address needs a relocation that is missing or refers to a symbol that the file does not have.",
        action="Name the linked program in place of an object file.",
    ),
    "XM007": Explanation(
        title="the index of functions does not fit the map",
        meaning=(
            "The runtime numbers functions by the section xray_fn_idx. It does not refer to the sleds of the map, so "
            "functions were numbered by changes of address, as llvm-xray does."
        ),
        action="Function names may be off by a few entries: check one that you know.",
    ),
    "XM008": Explanation(
        title="the index numbers functions in another way than their addresses",
        meaning=(
            "Functions were numbered by the section xray_fn_idx, as the runtime does. llvm-xray has other numbers for "
            "them, and other names for the functions in a log."
        ),
        action="No action is needed.",
    ),
    "XM009": Explanation(
        title="sections of the map have more bytes than the file",
        meaning="They overlap, which no linker produces. Those that fit were read.",
        action="Build the program again.",
    ),
    "XM010": Explanation(
        title="a part of the universal file cannot be read",
        meaning="The other architectures were read.",
        action="Copy the file again, or extract the needed part with `lipo -thin`.",
    ),
    "XM011": Explanation(
        title="the universal file has maps for several architectures",
        meaning="Ids may differ between them. The one for this machine was used, or else the first.",
        action="No action is needed if the log is of this architecture; otherwise name the right part.",
    ),
    "XM012": Explanation(
        title="function ids may belong to several objects",
        meaning=(
            "Shared objects are numbered in the upper 8 bits of an id, and FDR logs store 4 of them: objects 16, 17, "
            "18 have the ids of objects 0, 1, 2. Ambiguous functions are shown with both names."
        ),
        action="Record in Basic mode, which stores all bits, or instrument fewer objects.",
    ),
    "XM013": Explanation(
        title="functions belong to an object without a map",
        meaning=(
            "The log has functions of a shared object (LLVM 20 and newer, -fxray-shared), or the program itself has "
            "no map among those given."
        ),
        action=(
            "Give the program and its libraries: `--map PROGRAM --map LIBRARY ...`. Libraries that were opened with "
            "`dlopen` may need a number, `--map NUMBER=FILE`: objects are numbered as their constructors run."
        ),
    ),
    "XM014": Explanation(
        title="function ids are not in the map",
        meaning="The map has fewer functions than the log: it belongs to another build, program or object.",
        action="Name the exact file that ran. Names of the other functions are most likely wrong as well.",
    ),
    "XM015": Explanation(
        title="functions of the map have no names",
        meaning="No symbol and no function in the debug information starts at their address.",
        action="Give an unstripped copy or the debug file with `--symbols DIR`.",
    ),
}
