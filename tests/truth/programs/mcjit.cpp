// usage: mcjit PROGRAM.ll OBJECT.o MILLISECONDS FUNCTION...
//
// Compiles PROGRAM.ll in memory with LLVM's own perf listener attached, which writes a JITDUMP under $JITDUMPDIR, and writes
// the loaded object to OBJECT.o: the dump must agree with its DWARF line table. Each FUNCTION is then busy
// alone for MILLISECONDS of processor time, so that beside other work there are as many samples; a line of output states its
// address, start and end on CLOCK_MONOTONIC.
#include <llvm/ExecutionEngine/ExecutionEngine.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/MCJIT.h>
#include <llvm/ExecutionEngine/ObjectCache.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

class ObjectKeeper : public llvm::ObjectCache {
public:
	explicit ObjectKeeper(std::string path) : path(std::move(path)) {}

	void notifyObjectCompiled(const llvm::Module *, llvm::MemoryBufferRef object) override
	{
		std::error_code error;
		llvm::raw_fd_ostream(path, error) << object.getBuffer();
		if (error)
			llvm::report_fatal_error(llvm::StringRef(path + ": " + error.message()));
	}

	std::unique_ptr<llvm::MemoryBuffer> getObject(const llvm::Module *) override { return nullptr; }

private:
	std::string path;
};

int64_t monotonic_ns()
{
	return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int64_t processor_ns()
{
	return int64_t(std::clock()) * (1000000000 / CLOCKS_PER_SEC);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 5) {
		std::fprintf(stderr, "usage: mcjit PROGRAM.ll OBJECT.o MILLISECONDS FUNCTION...\n");
		return 2;
	}
	llvm::InitializeNativeTarget();
	llvm::InitializeNativeTargetAsmPrinter();

	llvm::LLVMContext context;
	llvm::SMDiagnostic problem;
	std::unique_ptr<llvm::Module> module = llvm::parseIRFile(argv[1], problem, context);
	if (!module) {
		problem.print(argv[0], llvm::errs());
		return 1;
	}
	llvm::JITEventListener *listener = llvm::JITEventListener::createPerfJITEventListener();
	if (!listener) {
		std::fprintf(stderr, "this LLVM was built without its perf listener\n");
		return 1;
	}
	std::string error;
	std::unique_ptr<llvm::ExecutionEngine> engine(
	    llvm::EngineBuilder(std::move(module)).setErrorStr(&error).setEngineKind(llvm::EngineKind::JIT).create());
	if (!engine) {
		std::fprintf(stderr, "%s\n", error.c_str());
		return 1;
	}
	ObjectKeeper keeper(argv[2]);
	engine->setObjectCache(&keeper);
	engine->RegisterJITEventListener(listener);
	engine->finalizeObject();

	const int64_t duration = std::atoll(argv[3]) * 1000000;
	for (int i = 4; i < argc; i++) {
		const uint64_t address = engine->getFunctionAddress(argv[i]);
		auto *work = reinterpret_cast<uint32_t (*)(uint32_t)>(address);
		if (!work) {
			std::fprintf(stderr, "no function %s\n", argv[i]);
			return 1;
		}
		const int64_t start = monotonic_ns(), end = processor_ns() + duration;
		uint32_t sum = 0;
		while (processor_ns() < end)
			sum += work(20000);
		std::printf("phase {\"function\": \"%s\", \"address\": %llu, \"start_ns\": %lld, \"end_ns\": %lld, \"result\": %u}\n", argv[i],
		            (unsigned long long)address, (long long)start, (long long)monotonic_ns(), sum);
	}
	return 0;
}
