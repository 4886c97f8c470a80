#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noinline)) void spin(int n){ for(int i=0;i<n*1000;i++) sink+=i; }
__attribute__((noinline)) void touch(int pages){ char *p=malloc(pages*4096L); for(int i=0;i<pages;i++) p[i*4096L]=1; sink+=p[0]; free(p);}
__attribute__((noinline)) void nap(int us){ usleep(us); }
static int k;
static void *worker(void*a){ for(int i=0;i<10;i++){ nap(2000); touch(40); spin(100*k);} return 0; }
int main(int c,char**v){ k = c>1 ? atoi(v[1]) : 1; pthread_t t; pthread_create(&t,0,worker,0); for(int i=0;i<8;i++){ nap(5000); spin(300*k);} pthread_join(t,0); return 0; }
