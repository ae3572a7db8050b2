/* Who sees a function, and for which processors it is compiled. */

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#ifdef SEVERAL_PROCESSORS /* the loader picks the version for the processor at hand */
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif
