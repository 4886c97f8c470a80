#include <unistd.h>
#include <sys/wait.h>
volatile unsigned long sink;
__attribute__((noinline)) void spin(unsigned long n){ for(unsigned long i=0;i<n;i++) sink+=i*i; }
int main(void){
  if (fork()==0){ spin(15000000); _exit(0);}
  spin(15000000);
  if (fork()==0){ execl("/bin/true","true",(char*)0); _exit(1);}
  wait(0); wait(0); return 0; }
