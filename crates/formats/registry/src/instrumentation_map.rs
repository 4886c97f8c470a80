//! Rules about XRay's instrumentation map, a section of programs rather than a recording of its own. What departs from them
//! is found by the engine, which reads programs.

use perfuse_wire::rules;

rules! {
    PARTIAL_ENTRY = "XM001", DataLoss, "",
        "the map ends within an entry",
        "The section xray_instr_map is not a whole number of entries (32 bytes, 16 where addresses have 32 bits). The whole ones were read.",
        "Build the program again; a linker script or a tool cut the section.";
    BEYOND_FILE = "XM002", DataLoss, "",
        "the map lies partly or wholly beyond the end of the file",
        "The file was cut, so that functions at the end of the map are missing, and their ids have no names.",
        "Copy the program again.";
    OUTSIDE_CODE = "XM003", Warning, "",
        "an address in the map is not in the program's code",
        "A sled or the function it is of has an address in no section with code. Its id stays, and it has no name.",
        "Nothing, where the program was changed after it was linked; else report how it was built.";
    UNKNOWN_KIND = "XM004", Warning, "",
        "a sled is of an unknown kind",
        "Kinds are 0 to 5: entry, exit, tail exit, entry with arguments, custom event, typed event. It was kept, with its number.",
        "Look whether the compiler is newer than this version of perfuse.";
    UNKNOWN_VERSION = "XM005", Warning, "",
        "an entry of the map is of an unknown version",
        "Versions are 0, 1 (absolute addresses) and 2 (relative to their field). It was read as version 2, or as absolute where only \
         that is in code.",
        "Look whether the compiler is newer than this version of perfuse.";
    UNRELOCATED = "XM006", Warning, "",
        "an address of the map is not known",
        "The file leaves the address to a relocation that is missing, or is about a symbol the file does not have.",
        "Give the linked program in place of an object file.";
    UNFIT_INDEX = "XM007", Warning, "",
        "the index of functions does not fit the map",
        "The runtime numbers functions by the section xray_fn_idx. It is not about the sleds of the map, so functions were numbered by \
         changes of address, as llvm-xray does it.",
        "Names of functions may be wrong by some: check one that you know.";
    RENUMBERED = "XM008", Info, "",
        "the index numbers functions in another way than their addresses",
        "Functions were numbered by the section xray_fn_idx, as the runtime does it. llvm-xray has other numbers for them, and other \
         names for the functions in a log.",
        "Nothing has to be done.";
    OVERLAPPING = "XM009", Warning, "",
        "sections of the map have more bytes than the file",
        "They overlap, which no linker makes them do. Those that fit were read.",
        "Build the program again.";
    UNREADABLE_SLICE = "XM010", Warning, "",
        "a part of the universal file cannot be read",
        "The other architectures were read.",
        "Copy the file again, or take the part that is needed out of it with `lipo -thin`.";
    SEVERAL_SLICES = "XM011", Info, "",
        "the universal file has maps for several architectures",
        "Ids may differ between them. The one for this machine was taken, or the first.",
        "Nothing, where the log is of this architecture; else name it.";
    ALIASED_OBJECTS = "XM012", Warning, "",
        "function ids may be of several objects",
        "Shared objects are numbered in the upper 8 bits of an id, and FDR logs keep 4 of them: objects 16, 17, 18 have the ids of \
         objects 0, 1, 2. Functions that may be either are shown with both names.",
        "Record in Basic mode, which keeps all bits, or instrument fewer objects.";
    UNMAPPED_OBJECT = "XM013", Warning, "",
        "functions are of an object that no map was given for",
        "The log has functions of a shared object (LLVM 20 and newer, -fxray-shared), or the program itself has no map among those given.",
        "Give each object's file with `--map NUMBER=FILE`; objects are numbered in the order their constructors ran, the program is 0.";
    UNKNOWN_FUNCTION = "XM014", Warning, "",
        "function ids are not in the map",
        "The map has fewer functions than the log: it is of another build, of another program, or of another object.",
        "Give the very file that ran. Names of the other functions are most likely wrong as well.";
    UNNAMED = "XM015", Warning, "",
        "functions of the map have no names",
        "No symbol and no function of the debug information starts where they start.",
        "Give an unstripped copy or the debug file with `--symbols DIR`.";
}
